/** What a lock and a hand-off cost on the wire, counted by the server, and that nobody is let past for it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "../../../servers/zookeeper.ts";
import { zookeeper } from "../../../src/engines/zookeeper/index.ts";
import { connect, type LockManager } from "../../../src/index.ts";
import { eventually } from "../../../src/testing/expect.ts";
import { Permission, ZooKeeper } from "../../../src/zookeeper/index.ts";

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

test("waiters of several sessions: the release, and a listing only by who had a session ahead that did not wait", async () => {
  const engine = { servers: server.address, sessionTimeoutMs: SESSION_MS };
  const managers = [await connect(zookeeper(engine)), await connect(zookeeper(engine))];
  const each = await requestsPerHandOff(managers, "two sessions");
  await Promise.all(managers.map((locks) => locks.close()));
  assert.ok(each < 1.6, `${each} requests per hand-off`);
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

test("a name that nobody else uses: one request to lock and one to unlock", async () => {
  const locks = await connect(zookeeper({ servers: server.address, sessionTimeoutMs: SESSION_MS }));
  await (await locks.acquire("quiet")).release();
  const from = await packets();
  const TURNS = 50;
  for (let turn = 0; turn < TURNS; turn++) await (await locks.acquire("quiet")).release();
  const each = ((await packets()) - from) / TURNS;
  await locks.close();
  assert.ok(each < 2.1, `${each} requests for a lock and unlock`);
});

test("who was alone looks again as soon as another session has come, and waits for it", async () => {
  const engine = { servers: server.address, sessionTimeoutMs: SESSION_MS };
  const [one, other] = [await connect(zookeeper(engine)), await connect(zookeeper(engine))];
  for (let turn = 0; turn < 3; turn++) await (await one.acquire("visited")).release();
  const visitor = await other.acquire("visited");
  assert.equal(await one.tryAcquire("visited"), null);
  const waiting = one.acquire("visited");
  await eventually(5_000, "queued", async () => (await other.query({ prefix: "visited" })).pending.length === 1);
  await visitor.release();
  const lock = await waiting;
  assert.ok(lock.token > visitor.token);
  await lock.release();
  // Come and gone again while nobody looked.
  await (await one.acquire("visited")).release();
  await (await other.acquire("visited")).release();
  const last = await one.acquire("visited");
  assert.equal(await other.tryAcquire("visited"), null);
  await last.release();
  await Promise.all([one.close(), other.close()]);
});

test("who was alone is not fooled by a container that was removed and counts from 0 again", async () => {
  const engine = { servers: server.address, sessionTimeoutMs: SESSION_MS };
  const [one, other] = [await connect(zookeeper(engine)), await connect(zookeeper(engine))];
  const zk = await ZooKeeper.connect(server.address);
  for (const turns of [1, 3]) {
    const name = `restarted${turns}`;
    for (let turn = 0; turn < turns; turn++) await (await one.acquire(name)).release();
    await eventually(10_000, "the container is gone", async () => (await zk.exists(`/holdfast/${name}`)) === null);
    for (let turn = 1; turn < turns; turn++) await (await other.acquire(name)).release();
    // Its number is the last that the first session had: the next is what that would get had nobody come.
    const holder = await other.acquire(name);
    assert.equal(await one.tryAcquire(name), null, `after ${turns}`);
    await holder.release();
  }
  await zk.close();
  await Promise.all([one.close(), other.close()]);
});

test("a crowd whose nodes nobody may write to is served all the same", async () => {
  const permissions = Permission.read | Permission.create | Permission.delete;
  const acl = [{ permissions, scheme: "world", id: "anyone" }];
  const engine = { servers: server.address, sessionTimeoutMs: SESSION_MS, root: "/unwritable", acl };
  const managers = await Promise.all(Array.from({ length: 4 }, () => connect(zookeeper(engine))));
  let inside = 0;
  const turns = managers.flatMap((locks) =>
    Array.from({ length: 3 }, () =>
      locks.request("crowd", () => {
        assert.equal(++inside, 1);
        inside--;
      }),
    ),
  );
  await Promise.all(turns);
  await Promise.all(managers.map((locks) => locks.close()));
});
