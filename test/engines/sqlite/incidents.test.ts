/** How lock libraries have failed in public, where it takes several processes to show. The numbers are those of the list. */
import assert from "node:assert/strict";
import { readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type LockManager } from "../../../src/index.ts";
import { monotonicMs, startProcess, temporaryFolder, type Granted } from "./workers.ts";

/** Resolves when so many stand in the queue, or after ten seconds with a failure. */
async function queued(locks: LockManager, count: number): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    const { held, pending } = await locks.query();
    if (held.length + pending.length === count) return;
    await sleep(20);
  }
  assert.fail(`there never were ${count} in the queue`);
}

test("incident 16: when a stopped holder's lease ends the next in the queue is in, and the queue goes on", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const [stopped, second, third] = [startProcess(t), startProcess(t), startProcess(t)];
  for (const worker of [stopped, second, third]) await worker.connect(path);
  const ttlMs = 1_500;
  await stopped.acquire("x", { ttlMs });
  const secondGrant = second.acquire("x", { ttlMs });
  const watcher = await connect(`sqlite:${path}`);
  await queued(watcher, 2);
  const thirdGrant = third.acquire("x", { ttlMs });
  await queued(watcher, 3);
  await watcher.close();
  stopped.signal("SIGSTOP");
  const stoppedAtMs = monotonicMs();
  const { atMs } = await secondGrant;
  assert.ok(atMs - stoppedAtMs < ttlMs + 1_000, `granted after ${atMs - stoppedAtMs} ms`);
  const releasedAtMs = await second.release("x");
  const last = await thirdGrant;
  assert.ok(last.atMs - releasedAtMs < 1_000, `granted after ${last.atMs - releasedAtMs} ms`);
});

test("incident 55: many find the same dead holder at once, and only one takes over", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const finders = Array.from({ length: 5 }, () => startProcess(t));
  await Promise.all(finders.map((finder) => finder.connect(path)));
  for (let round = 0; round < 4; round++) {
    const dead = startProcess(t);
    await dead.connect(path);
    await dead.acquire("x", { ttlMs: 60_000 });
    await dead.kill();
    const outcomes = await Promise.all(finders.map((finder) => finder.tryAcquire("x", { ttlMs: 60_000 })));
    const winners = outcomes.flatMap((outcome, index) => (outcome === null ? [] : [finders[index]]));
    assert.equal(winners.length, 1);
    await winners[0]?.release("x");
  }
});

test("incident 56: the times of files mean nothing", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "locks.db");
  const [holder, other] = [startProcess(t), startProcess(t)];
  await holder.connect(path);
  await other.connect(path);
  await holder.acquire("x", { ttlMs: 60_000 });
  for (const seconds of [0, 4_000_000_000]) {
    for (const name of readdirSync(`${path}-presence`)) utimesSync(join(`${path}-presence`, name), seconds, seconds);
    for (const name of ["", "-wal", "-shm"]) utimesSync(path + name, seconds, seconds);
    assert.equal(await other.tryAcquire("x"), null);
  }
});

for (const how of ["exit", "crash"] as const) {
  test(`incident 64: a minimum hold keeps the place after ${how === "exit" ? "an exit" : "a crash"}, and no longer`, async (t) => {
    const path = join(temporaryFolder(t), "locks.db");
    const [job, waiter] = [startProcess(t), startProcess(t)];
    await job.connect(path);
    await waiter.connect(path);
    const { atMs: fromMs } = await job.acquire("x", { ttlMs: 60_000, minHoldMs: 2_500 });
    const granted = waiter.acquire("x");
    await sleep(100);
    if (how === "crash") await job.kill();
    else {
      job.tell({ verb: "exit" }).catch(() => {});
      await job.exited;
    }
    assert.equal(await waiter.tryAcquire("x"), null);
    const waitedMs = (await granted).atMs - fromMs;
    // The hold began when the request was granted, a moment before its owner knew.
    assert.ok(waitedMs > 2_200, `granted after only ${waitedMs} ms`);
    assert.ok(waitedMs < 4_000, `granted after ${waitedMs} ms`);
  });
}

test("holders and waiters that die in turn: everybody else is served, in order, tokens growing", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const workers = Array.from({ length: 7 }, () => startProcess(t));
  await Promise.all(workers.map((worker) => worker.connect(path)));
  const watcher = await connect(`sqlite:${path}`);
  const grants: Promise<Granted | undefined>[] = [];
  for (const worker of workers) {
    grants.push(worker.acquire("x", { ttlMs: 60_000 }).catch(() => undefined));
    await queued(watcher, grants.length);
  }
  await watcher.close();
  let last = 0n;
  for (const [index, worker] of workers.entries()) {
    if (index % 3 === 1) {
      // Killed while it waits, or in the moment of its grant.
      await worker.kill();
      continue;
    }
    const grant = await grants[index];
    assert.ok(grant !== undefined && BigInt(grant.token) > last);
    last = BigInt(grant.token);
    if (index % 3 === 0) await worker.kill();
    else await worker.release("x");
  }
});

test("readers in several processes share, a writer waits for all of them, and one that dies does not keep it", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const [one, two, three] = [startProcess(t), startProcess(t), startProcess(t)];
  for (const worker of [one, two, three]) await worker.connect(path);
  await one.acquire("x", { ttlMs: 60_000, mode: "shared" });
  await two.acquire("x", { ttlMs: 60_000, mode: "shared" });
  const writer = await connect(`sqlite:${path}`);
  const granted = writer.acquire("x");
  await queued(writer, 3);
  // A reader that comes later stands behind the writer.
  assert.equal(await three.tryAcquire("x", { mode: "shared" }), null);
  await two.release("x");
  await sleep(150);
  const killedAtMs = monotonicMs();
  one.signal("SIGKILL");
  const lock = await granted;
  const waitedMs = monotonicMs() - killedAtMs;
  assert.ok(waitedMs < 1_000, `granted after ${waitedMs} ms`);
  await lock.release();
  await writer.close();
});
