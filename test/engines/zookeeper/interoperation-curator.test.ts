/** Curator's InterProcessMutex on the same path: its requests and ours stand in one queue, and both see that. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { curator, type PeerProgram } from "../../../bench/works/peers/zookeeper-locks.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../../servers/zookeeper.ts";
import { zookeeper } from "../../../src/engines/zookeeper/index.ts";
import { connect, type LockManager } from "../../../src/index.ts";

let server: ZooKeeperServer;
let locks: LockManager;
let other: PeerProgram;

before(async () => {
  server = await startZooKeeper();
  locks = await connect(zookeeper({ servers: server.address, sessionTimeoutMs: 10_000 }));
  other = await curator(server.address, "/holdfast/shared", 1);
});

after(async () => {
  await locks.close();
  await other.stop();
  await server.stop();
});

test("we wait for Curator's lock in its place", async () => {
  assert.equal(await other.ask("acquire"), "ok");
  assert.equal(await locks.tryAcquire("shared"), null);
  let granted = false;
  const waiting = locks.acquire("shared").then((lock) => ((granted = true), lock));
  await sleep(300);
  assert.ok(!granted);
  assert.equal(await other.ask("release"), "ok");
  await (await waiting).release();
});

test("Curator waits for ours in its place", async () => {
  const lock = await locks.acquire("shared");
  let theirs = false;
  const answer = other.ask("acquire").then((line) => ((theirs = true), line));
  await sleep(500);
  assert.ok(!theirs);
  // Behind Curator, before it is granted: the order of both is one.
  const behind = locks.acquire("shared");
  await lock.release();
  assert.equal(await answer, "ok");
  assert.deepEqual(await Promise.race([behind, sleep(300, "waits")]), "waits");
  assert.equal(await other.ask("release"), "ok");
  await (await behind).release();
});

test("many turns of both: never two at once", async () => {
  const counting = other.ask("run 1500");
  let turns = 0;
  for (const until = performance.now() + 1_500; performance.now() < until; turns++) {
    await (await locks.acquire("shared")).release();
  }
  assert.ok(Number(await counting) > 0 && turns > 0, "both have had turns");
});
