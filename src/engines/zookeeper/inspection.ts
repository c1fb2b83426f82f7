/** What stands on the server, read by somebody who takes no part: who holds, who waits, which names there are; eviction. */
import type { Client, Queue, QueueEntry } from "../../engine/engine.ts";
import { heldPrefix, type Wish } from "../../engine/queue.ts";
import type { NodeData, ZooKeeper } from "../../zookeeper/index.ts";
import { hasCode } from "./failure.ts";
import { SEALED } from "./generations.ts";
import { lockPath, nameOf } from "./lock-path.ts";
import { HELD, heldData, isWaiting, releaseOf } from "./race-request.ts";
import { queueOf, type RequestNode } from "./request-node.ts";

const EXCLUSIVE: Wish = { mode: "exclusive", limit: 1 };

/** How one recipe is read. */
export interface Reading {
  inspect(zk: ZooKeeper, root: string, name: string): Promise<Queue>;
  evict(zk: ZooKeeper, root: string, name: string, token: bigint): Promise<boolean>;
}

/** Recipe 2. Cost: one round trip for the list and one for all its nodes, per generation. */
export const queueReading: Reading = {
  async inspect(zk, root, name) {
    const entries: QueueEntry[] = [];
    for (const { parent, queue } of await generationsOf(zk, root, name)) {
      // While an earlier generation has requests, nobody is granted in a later one.
      const held = entries.length === 0 ? heldPrefix(queue) : 0;
      const nodes = await Promise.all(queue.map((node) => read(zk, `${parent}/${node.name}`)));
      nodes.forEach((node, index) => {
        const wish = queue[index];
        if (node !== undefined && wish !== undefined)
          entries.push(entryOf(wish, node, index < held, node.data.toString()));
      });
    }
    return entries;
  },

  async evict(zk, root, name, token) {
    const all = await generationsOf(zk, root, name);
    const first = all.find(({ queue }) => queue.length > 0);
    if (first === undefined) return false;
    const held = first.queue.slice(0, heldPrefix(first.queue)).map((node) => `${first.parent}/${node.name}`);
    const stats = await Promise.all(held.map((path) => zk.exists(path)));
    const path = held[stats.findIndex((stat) => stat?.czxid === token)];
    return path !== undefined && (await removed(() => zk.delete(path)));
  },
};

/** Recipe 1. */
export const raceReading: Reading = {
  async inspect(zk, root, name) {
    const parent = lockPath(root, name);
    const waiting = (await childrenOf(zk, parent)).filter(isWaiting);
    const [holder, ...waiters] = await Promise.all([HELD, ...waiting].map((child) => read(zk, `${parent}/${child}`)));
    const entries: QueueEntry[] = [];
    if (holder !== undefined) entries.push(entryOf(EXCLUSIVE, holder, true, heldData(holder.data).client));
    for (const waiter of waiters) {
      if (waiter !== undefined) entries.push(entryOf(EXCLUSIVE, waiter, false, waiter.data.toString()));
    }
    return entries;
  },

  async evict(zk, root, name, token) {
    const parent = lockPath(root, name);
    const holder = await read(zk, `${parent}/${HELD}`);
    if (holder?.stat.czxid !== token) return false;
    const { owner } = heldData(holder.data);
    return removed(() => zk.multi(releaseOf(parent, owner)));
  },
};

/** The names that have a container; some of them may have nobody in it. */
export async function* namesOf(zk: ZooKeeper, root: string, prefix: string): AsyncIterable<string> {
  const seen = new Set<string>();
  for (const child of await childrenOf(zk, root)) {
    const name = nameOf(child);
    if (name === undefined || !name.startsWith(prefix) || seen.has(name)) continue;
    seen.add(name);
    yield name;
  }
}

async function generationsOf(
  zk: ZooKeeper,
  root: string,
  name: string,
): Promise<{ parent: string; queue: RequestNode[] }[]> {
  const all: { parent: string; queue: RequestNode[] }[] = [];
  for (;;) {
    const parent = lockPath(root, name, all.length);
    const children = await childrenOf(zk, parent);
    all.push({ parent, queue: queueOf(children) });
    if (!children.includes(SEALED)) return all;
  }
}

/** As of now: a follower first catches up with its leader. In one write. */
async function childrenOf(zk: ZooKeeper, path: string): Promise<string[]> {
  zk.sync(path, { more: true }).catch(() => {}); // what is wrong with it is wrong with the other
  try {
    return (await zk.getChildren(path)).children;
  } catch (error) {
    if (hasCode(error, "NO_NODE")) return [];
    throw error;
  }
}

async function read(zk: ZooKeeper, path: string): Promise<NodeData | undefined> {
  try {
    return await zk.getData(path);
  } catch (error) {
    if (hasCode(error, "NO_NODE")) return undefined;
    throw error;
  }
}

async function removed(remove: () => Promise<unknown>): Promise<boolean> {
  try {
    await remove();
    return true;
  } catch (error) {
    if (hasCode(error, "NO_NODE")) return false;
    throw error;
  }
}

/** `sinceMs` is when it was queued, also for a held one: the server does not know when a wait ended. */
function entryOf({ mode, limit }: Wish, { stat }: NodeData, held: boolean, data: string): QueueEntry {
  const { value, ...client } = clientOf(data);
  const entry: QueueEntry = {
    mode,
    limit,
    token: held ? stat.czxid : null,
    client,
    sinceMs: stat.ctimeMs,
    remainingMs: null,
  };
  return value === undefined ? entry : { ...entry, value };
}

/** What a request tells of itself. Others may have written anything. */
function clientOf(data: string): Client & { value?: string } {
  try {
    const { clientId, host, pid, value } = JSON.parse(data) as Record<string, unknown>;
    const client = { clientId: String(clientId), host: String(host), pid: Number(pid) };
    return typeof value === "string" ? { ...client, value } : client;
  } catch {
    return { clientId: "", host: "", pid: 0 };
  }
}
