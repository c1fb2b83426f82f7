/** What the nodes know, put together: who holds, who waits, which names there are; and eviction by hand. */
import type { Client, Queue, QueueEntry } from "../../engine/engine.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import type { Electorate } from "./ballot.ts";
import type { Announcement } from "./line.ts";
import type { RedlockNode } from "./node.ts";
import { BELL_PREFIX, EVICT, INSPECT, LOCK_PREFIX, lockKey, WAIT_PREFIX, waitKey } from "./scripts.ts";
import { holderLeftMs } from "./terms.ts";

const SCAN_COUNT = 500;

interface LockView {
  readonly owner: string;
  readonly counter: number;
  readonly sinceMs: number;
  readonly leftMs: number;
  readonly client: Client;
  readonly value: string | undefined;
}

interface NodeSight {
  readonly lock: LockView | undefined;
  /** By bell: one for each process. */
  readonly waiting: ReadonlyMap<string, Announcement>;
}

/** The queue of `name`: the holder, if a quorum of nodes agree on one, then those who wait, oldest first. */
export async function inspect(electorate: Electorate, name: string): Promise<Queue> {
  const sights = await askAll(electorate, (node) =>
    node.eval(INSPECT, [lockKey(name), waitKey(name)], []).then(sightOf),
  );
  const waiting = new Map<string, Announcement>();
  for (const sight of sights) for (const [bell, view] of sight.waiting) waiting.set(bell, view);
  const pending = [...waiting.values()].flatMap(({ clientId, host, pid, waiting: places }) =>
    places.map(({ sinceMs, value }): QueueEntry => ({
      ...SOLE,
      token: null,
      client: { clientId, host, pid },
      sinceMs,
      remainingMs: null,
      value,
    })),
  );
  return [...holderOf(electorate, sights), ...pending.sort((left, right) => left.sinceMs - right.sinceMs)];
}

const SOLE = { mode: "exclusive", limit: 1 } as const;

function holderOf({ terms }: Electorate, sights: readonly NodeSight[]): Queue {
  const byOwner = new Map<string, LockView[]>();
  for (const { lock } of sights) {
    if (lock !== undefined) byOwner.set(lock.owner, [...(byOwner.get(lock.owner) ?? []), lock]);
  }
  const votes = [...byOwner.values()].find((views) => views.length >= terms.quorum);
  const [first] = votes ?? [];
  if (votes === undefined || first === undefined) return [];
  const counters = votes.map(({ counter }) => counter);
  const token = counters.find((each) => counters.filter((other) => other === each).length >= terms.quorum);
  // Not agreed yet: its ballot is still going on.
  if (token === undefined) return [];
  const lefts = votes.map(({ leftMs }) => leftMs).sort((left, right) => right - left);
  const { client, sinceMs, value } = first;
  return [
    {
      ...SOLE,
      token: BigInt(token),
      client,
      sinceMs,
      remainingMs: holderLeftMs(lefts[terms.quorum - 1] ?? 0, terms),
      value,
    },
  ];
}

function sightOf(reply: readonly unknown[]): NodeSight {
  const nowMs = Number(reply[1]) * 1_000 + Number(reply[2]) / 1_000;
  const waiting = new Map<string, Announcement>();
  for (let index = 4; index + 1 < reply.length; index += 2) {
    const [, expiry, json] = /^(\d+)\|(.*)$/s.exec(String(reply[index + 1])) ?? [];
    if (json === undefined || Number(expiry) <= nowMs) continue;
    waiting.set(String(reply[index]), JSON.parse(json) as Announcement);
  }
  return { lock: lockOf(String(reply[3]), nowMs), waiting };
}

/** Undefined when nobody's lease is running. */
function lockOf(record: string, nowMs: number): LockView | undefined {
  const [, counter, expiry, since, owner = "", client] =
    /^(\d+)\|(\d+)\|(\d+)\|([^|]*)\|[^|]*\|(.*)$/s.exec(record) ?? [];
  const leftMs = Number(expiry) - nowMs;
  if (owner === "" || client === undefined || leftMs <= 0) return undefined;
  const { value, ...shown } = JSON.parse(client) as Client & { value?: string };
  return { owner, counter: Number(counter), sinceMs: Number(since), leftMs, client: shown, value };
}

/** The names that have a holder or somebody waiting, on any node. */
export async function* names(electorate: Electorate, prefix: string): AsyncIterable<string> {
  const seen = new Set<string>();
  for (const node of electorate.nodes.filter((each) => each.incarnation !== undefined)) {
    for (const kind of [LOCK_PREFIX, WAIT_PREFIX]) {
      for await (const found of scan(node, kind, prefix)) {
        if (seen.has(found)) continue;
        const sight = sightOf(await node.eval(INSPECT, [lockKey(found), waitKey(found)], []));
        if (sight.lock === undefined && sight.waiting.size === 0) continue;
        seen.add(found);
        yield found;
      }
    }
  }
}

async function* scan(node: RedlockNode, kind: string, prefix: string): AsyncIterable<string> {
  const { keyPrefix } = node.source;
  const pattern = `${glob(keyPrefix + kind + prefix)}*`;
  let cursor = "0";
  do {
    const reply = await node.command(["scan", cursor, "match", pattern, "count", String(SCAN_COUNT)]);
    const [next, keys] = reply as [unknown, readonly unknown[]];
    for (const key of keys) yield String(key).slice(keyPrefix.length + kind.length);
    cursor = String(next);
  } while (cursor !== "0");
}

/** `text` as a pattern of SCAN that matches nothing else. */
function glob(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}

/** Ends the holder of `name` with `token`. False when no node has it. */
export async function evict(electorate: Electorate, name: string, token: bigint): Promise<boolean> {
  const { nodes, terms } = electorate;
  const args = [String(token), String(terms.rememberMs), BELL_PREFIX, name];
  const found = await askAll(electorate, (node) =>
    node.eval(EVICT, [lockKey(name), waitKey(name)], args).then(([ended]) => Number(ended) === 1),
  );
  // Those that could not be asked may still vouch for it.
  if (nodes.length - found.length >= terms.quorum) throw new EngineUnavailableError("too few nodes answered");
  return found.includes(true);
}

/** Asks every node that is connected. Rejects when fewer than a quorum answer. */
async function askAll<T>({ nodes, terms }: Electorate, ask: (node: RedlockNode) => Promise<T>): Promise<T[]> {
  const settled = await Promise.allSettled(nodes.map(ask));
  const answers = settled.filter((each) => each.status === "fulfilled").map(({ value }) => value);
  if (answers.length < terms.quorum) {
    const reasons = settled.flatMap((each, index) =>
      each.status === "rejected" ? [`${nodes[index]?.label}: ${(each.reason as Error).message}`] : [],
    );
    throw new EngineUnavailableError(`${answers.length} of ${nodes.length} nodes answered (${reasons.join("; ")})`);
  }
  return answers;
}
