/** What a hand-off costs on the wire, counted by the server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "../../../servers/zookeeper.ts";
import { zookeeper } from "../../../src/engines/zookeeper/index.ts";
import { connect, type LockManager } from "../../../src/index.ts";
import { eventually } from "../../../src/testing/expect.ts";

const WAITERS = 8;
/** So long that no ping is due. */
const SESSION_MS = 60_000;

let server: ZooKeeperServer;
before(async () => void (server = await startZooKeeper()));
after(() => server.stop());

async function packets(): Promise<number> {
  return Number(/^zk_packets_received\t(\d+)$/m.exec(await server.ask("mntr"))?.[1]);
}

/** Requests per hand-off when a lock goes through a queue of waiters, taken in turn from `managers`. */
async function requestsPerHandOff(managers: readonly LockManager[], name: string): Promise<number> {
  const [first] = managers;
  assert.ok(first !== undefined);
  const lock = await first.acquire(name);
  const order: number[] = [];
  const served: Promise<void>[] = [];
  for (let waiter = 0; waiter < WAITERS; waiter++) {
    served.push(managers[waiter % managers.length]?.request(name, () => void order.push(waiter)) ?? Promise.resolve());
    await eventually(5_000, "the waiter is queued", async () => (await first.query()).pending.length === waiter + 1);
  }
  const from = await packets();
  await lock.release();
  await Promise.all(served);
  assert.deepEqual(
    order,
    Array.from({ length: WAITERS }, (_, waiter) => waiter),
  );
  return ((await packets()) - from) / (WAITERS + 1);
}

test("waiters of one session: a hand-off is the release and nothing else", async () => {
  const locks = await connect(zookeeper({ servers: server.address, sessionTimeoutMs: SESSION_MS }));
  const each = await requestsPerHandOff([locks], "one session");
  await locks.close();
  assert.ok(each < 1.6, `${each} requests per hand-off`);
});

test("waiters of several sessions: the release, and one listing by who had several ahead", async () => {
  const engine = { servers: server.address, sessionTimeoutMs: SESSION_MS };
  const managers = [await connect(zookeeper(engine)), await connect(zookeeper(engine))];
  const each = await requestsPerHandOff(managers, "two sessions");
  await Promise.all(managers.map((locks) => locks.close()));
  assert.ok(each > 1.6 && each < 2.4, `${each} requests per hand-off`);
});

test("a waiter that leaves, or is evicted, lets nobody past those ahead of it", async () => {
  const locks = await connect(zookeeper({ servers: server.address, sessionTimeoutMs: SESSION_MS }));
  const holder = await locks.acquire("left");
  const leaving = new AbortController();
  const left = locks.acquire("left", { signal: leaving.signal }).catch(() => undefined);
  await eventually(5_000, "queued", async () => (await locks.query()).pending.length === 1);
  const behind = locks.acquire("left");
  await eventually(5_000, "queued", async () => (await locks.query()).pending.length === 2);
  leaving.abort();
  await left;
  await eventually(5_000, "gone", async () => (await locks.query()).pending.length === 1);
  assert.equal((await locks.query({ prefix: "left" })).held[0]?.token, holder.token);
  assert.ok(holder.isHeld());
  await holder.release();
  const next = await behind;
  assert.ok(next.token > holder.token);
  await next.release();
  await locks.close();
});
