/** Public incidents, on one real server. The numbers are those of docs/incidents.md. */
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { startFaultProxy, type FaultProxy } from "../../../servers/fault-proxy.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../../servers/zookeeper.ts";
import type { ZooKeeperEngine } from "../../../src/engines/zookeeper/engine.ts";
import { type ZooKeeperOptions, zookeeperEngine } from "../../../src/engines/zookeeper/index.ts";
import { nodePrefix } from "../../../src/engines/zookeeper/request-node.ts";
import { connect, type LockManager } from "../../../src/index.ts";
import { eventually, pause, stillPending, within } from "../../../src/testing/expect.ts";
import { AdjustableClock } from "../../../src/testing/pausable-clock.ts";
import { ZooKeeper } from "../../../src/zookeeper/index.ts";

/** Long enough that nothing here is solved by the end of a session. */
const SESSION_MS = 20_000;
const SOON_MS = 8_000;

let server: ZooKeeperServer;
/** A session of somebody else's. */
let other: ZooKeeper;

before(async () => {
  server = await startZooKeeper();
  other = await ZooKeeper.connect(server.address, { sessionTimeoutMs: 60_000 });
});

after(async () => {
  await other.close();
  await server.stop();
});

interface Client {
  readonly locks: LockManager;
  readonly engine: ZooKeeperEngine;
}

const RECIPES = [
  { fair: true, root: "/queue" },
  { fair: false, root: "/race" },
] as const;

async function client(t: TestContext, options: Partial<ZooKeeperOptions>): Promise<Client> {
  const engine = zookeeperEngine({ servers: server.address, sessionTimeoutMs: SESSION_MS, ...options });
  const locks = await connect(engine);
  t.after(() => locks.close());
  return { locks, engine };
}

async function proxied(t: TestContext, options: Partial<ZooKeeperOptions>): Promise<Client & { proxy: FaultProxy }> {
  const proxy = await startFaultProxy(server.port);
  const each = await client(t, { servers: proxy.address, ...options });
  t.after(() => proxy.close());
  return { ...each, proxy };
}

async function pending(locks: LockManager, count: number, name: string): Promise<void> {
  await eventually(SOON_MS, `${count} requests pending`, async () => {
    return (await locks.query({ prefix: name })).pending.length === count;
  });
}

/** All of whose owners are the same: what somebody could guess, or an earlier life of ours has left. */
class OneOwner extends AdjustableClock {
  override randomBytes(size: number): Uint8Array {
    return Buffer.alloc(size, 7);
  }
}
const OWNER = Buffer.alloc(16, 7).toString("base64url");

test("incident 21: names that are not used any more leave no node, and tokens still grow", async (t) => {
  const { locks } = await client(t, { root: "/forget" });
  const first = await locks.acquire("name-0");
  await first.release();
  const names = Array.from({ length: 200 }, (_, n) => `name-${n}`);
  await Promise.all(names.map((name) => locks.request(name, () => {})));
  await eventually(SOON_MS, "the containers are gone", async () => {
    return (await other.getChildren("/forget")).children.every((child) => child.startsWith("~"));
  });
  const again = await locks.acquire("name-0");
  assert.ok(again.token > first.token);
  await again.release();
});

for (const recipe of RECIPES) {
  const kind = recipe.fair ? "queue" : "race";

  test(`incident 24: a release that never reaches the server is tried again, within the same session (${kind})`, async (t) => {
    const { locks, engine, proxy } = await proxied(t, recipe);
    const next = await client(t, recipe);
    const lock = await locks.acquire("release");
    const id = engine.session?.zk.session.id;
    proxy.set({ toServer: "drop" });
    const releasing = lock.release();
    await pause(100);
    proxy.set({ toServer: "pass" });
    proxy.reset();
    await within(SOON_MS, "the release", releasing);
    await (await within(SOON_MS, "the same client's next request", locks.acquire("release"))).release();
    await (await within(SOON_MS, "another's", next.locks.acquire("release"))).release();
    assert.equal(engine.session?.zk.session.id, id);
  });

  test(`incident 25: cancelled waits, hand-offs and nodes that are gone already leave no watch (${kind})`, async (t) => {
    const { locks: holding } = await client(t, recipe);
    const { locks, engine } = await client(t, recipe);
    const holder = await holding.acquire("watches");
    const abort = new AbortController();
    const cancelled = Array.from({ length: 30 }, () => locks.acquire("watches", { signal: abort.signal }));
    await pending(holding, 30, "watches");
    assert.ok((engine.session?.zk.watchCount ?? 0) > 0, "who waits watches");
    abort.abort();
    await Promise.allSettled(cancelled);
    await pending(holding, 0, "watches");
    const served = [holding, locks].flatMap((each) =>
      Array.from({ length: 20 }, () => each.request("watches", () => {})),
    );
    await holder.release();
    await within(SOON_MS, "all of them", Promise.all(served));
    await eventually(SOON_MS, "the server keeps no watch", async () => {
      return (await server.ask("wchs")).includes("Total watches:0");
    });
    assert.equal(engine.session?.zk.watchCount, 0);
  });

  test(`incident 30: what a waiter waits for goes while it is cut off: it is granted with the next connection (${kind})`, async (t) => {
    const { locks, proxy } = await proxied(t, recipe);
    const { locks: holding } = await client(t, recipe);
    const holder = await holding.acquire("cut off");
    const waiting = locks.acquire("cut off");
    await pending(holding, 1, "cut off");
    proxy.set({ refuse: true });
    proxy.reset();
    await holder.release();
    await stillPending(300, "the waiter", waiting);
    proxy.set({ refuse: false });
    const lock = await within(SOON_MS, "the waiter", waiting);
    assert.ok(lock.token > holder.token);
    await lock.release();
  });
}

test("incident 27: after a lost reply, a node with our owner in its name that is another session's is not ours", async (t) => {
  const { locks, proxy } = await proxied(t, { root: "/queue", clock: new OneOwner() });
  await other.create("/queue/leader", "", { mode: "container" });
  await other.create("/queue/leader/keep");
  const wish = { mode: "exclusive", limit: 1 } as const;
  const foreign = await other.create(`/queue/leader/${nodePrefix(OWNER, wish)}`, "", { mode: "ephemeral-sequential" });
  proxy.set({ toServer: "drop" });
  const acquiring = locks.acquire("leader");
  await pause(100);
  proxy.set({ toServer: "pass" });
  proxy.reset();
  await pending(locks, 1, "leader");
  await stillPending(300, "the second", acquiring);
  await other.delete(foreign.path);
  const lock = await within(SOON_MS, "the second", acquiring);
  assert.ok(lock.token > foreign.stat.czxid);
  await lock.release();
});

test("incident 27: nor is the node that is raced for, whatever owner it tells", async (t) => {
  const { locks } = await client(t, { fair: false, root: "/race", clock: new OneOwner() });
  await other.create("/race/leader", "", { mode: "container" });
  await other.create("/race/leader/held", `${OWNER} {}`, { mode: "ephemeral" });
  assert.equal(await locks.tryAcquire("leader"), null);
  const acquiring = locks.acquire("leader");
  await stillPending(300, "the second", acquiring);
  await other.delete("/race/leader/held");
  await (await within(SOON_MS, "the second", acquiring)).release();
});

test("incident 47: many make the root, the container and the session at once, and all are served", async (t) => {
  const all = await Promise.all(Array.from({ length: 6 }, () => client(t, { root: "/made/by/many" })));
  const tokens = await Promise.all(all.map(({ locks }) => locks.request("same", (lock) => lock.token)));
  assert.equal(new Set(tokens).size, 6);
  const [first] = all;
  const session = first?.engine.session?.zk.session;
  assert.ok(first && session);
  const sessions = async (): Promise<number> =>
    Number(/^zk_global_sessions\t(\d+)$/m.exec(await server.ask("mntr"))?.[1]);
  const before = await sessions();
  await (await ZooKeeper.connect(server.address, { session })).close();
  await eventually(SOON_MS, "the end of the session", () => first.engine.session?.over === true);
  const names = Array.from({ length: 10 }, (_, n) => `after ${n}`);
  await within(SOON_MS, "first requests", Promise.all(names.map((name) => first.locks.request(name, () => {}))));
  assert.equal(await sessions(), before, "one session in the place of the one that ended");
});
