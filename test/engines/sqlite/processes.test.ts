/** Several processes at one lock file. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { monotonicMs, startProcess, startThread, temporaryFolder } from "./workers.ts";

/** A grant over the bell takes a fraction of a millisecond; this machine may be busy. */
const SOON_MS = 1_000;
const TTL = { ttlMs: 60_000 };

test("a release wakes the next process at once, in the order of their requests", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const workers = [startProcess(t), startProcess(t), startProcess(t)] as const;
  for (const worker of workers) await worker.connect(path);
  const [first, second, third] = workers;
  const one = await first.acquire("x", TTL);
  const secondGrant = second.acquire("x", TTL);
  await sleep(100);
  const thirdGrant = third.acquire("x", TTL);
  await sleep(100);
  const releasedAtMs = await first.release("x");
  const two = await secondGrant;
  assert.ok(two.atMs - releasedAtMs < SOON_MS, `granted after ${two.atMs - releasedAtMs} ms`);
  await second.release("x");
  const three = await thirdGrant;
  assert.ok(BigInt(one.token) < BigInt(two.token) && BigInt(two.token) < BigInt(three.token));
});

test("a killed holder's lock passes on at once, long before its lease ends", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const [holder, waiter] = [startProcess(t), startProcess(t)];
  await holder.connect(path);
  await waiter.connect(path);
  const first = await holder.acquire("x", TTL);
  const granted = waiter.acquire("x", TTL);
  await sleep(200);
  const killedAtMs = monotonicMs();
  holder.signal("SIGKILL");
  const second = await granted;
  assert.ok(second.atMs - killedAtMs < SOON_MS, `granted after ${second.atMs - killedAtMs} ms`);
  assert.ok(BigInt(second.token) > BigInt(first.token));
});

test("a holder that died before anybody waited is found dead by the first who asks, waiting or not", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const [one, two, other] = [startProcess(t), startProcess(t), startProcess(t)];
  for (const worker of [one, two, other]) await worker.connect(path);
  await one.acquire("x", TTL);
  await one.kill();
  assert.ok((await other.tryAcquire("x", TTL)) !== null);
  await two.acquire("y", TTL);
  await two.kill();
  const askedAtMs = monotonicMs();
  const granted = await other.acquire("y", TTL);
  assert.ok(granted.atMs - askedAtMs < SOON_MS, `granted after ${granted.atMs - askedAtMs} ms`);
});

test("a killed waiter does not stand in the way of those behind it", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const workers = [startProcess(t), startProcess(t), startProcess(t)] as const;
  for (const worker of workers) await worker.connect(path);
  const [holder, killed, last] = workers;
  await holder.acquire("x", TTL);
  killed.acquire("x", TTL).catch(() => {});
  await sleep(100);
  const granted = last.acquire("x", TTL);
  await sleep(100);
  await killed.kill();
  await sleep(100);
  const releasedAtMs = await holder.release("x");
  const { atMs } = await granted;
  assert.ok(atMs - releasedAtMs < SOON_MS, `granted after ${atMs - releasedAtMs} ms`);
});

test("a stopped holder keeps its lock until its lease ends, and knows on waking that it has lost it", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const [holder, waiter] = [startProcess(t), startProcess(t)];
  await holder.connect(path);
  await waiter.connect(path);
  const options = { ttlMs: 1_500 };
  const first = await holder.acquire("x", options);
  const granted = waiter.acquire("x", options);
  await sleep(100);
  holder.signal("SIGSTOP");
  const stoppedAtMs = monotonicMs();
  const second = await granted;
  const waitedMs = second.atMs - stoppedAtMs;
  // It had renewed at some time in the last third of its TTL.
  assert.ok(waitedMs > 900, `granted after only ${waitedMs} ms`);
  assert.ok(waitedMs < 1_500 + SOON_MS, `granted after ${waitedMs} ms`);
  assert.ok(BigInt(second.token) > BigInt(first.token));
  await sleep(500);
  holder.signal("SIGCONT");
  const state = await holder.state("x");
  assert.equal(state?.isHeld, false);
  await sleep(100);
  assert.deepEqual(await holder.state("x"), { isHeld: false, aborted: true, reason: "expired" });
  assert.equal((await waiter.state("x"))?.isHeld, true);
});

test("eight processes hammer one lock: never two inside, tokens grow in the order of the holds", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const workers = Array.from({ length: 8 }, () => startProcess(t));
  await Promise.all(workers.map((worker) => worker.connect(path)));
  const count = 100;
  const spans = await Promise.all(
    workers.map((worker) => worker.tell<[number, number, string][]>({ verb: "hammer", name: "x", count })),
  );
  const inOrder = spans.flat().sort((left, right) => left[0] - right[0]);
  assert.equal(inOrder.length, 8 * count);
  for (const [index, [from, , token]] of inOrder.entries()) {
    const before = inOrder[index - 1];
    if (before === undefined) continue;
    assert.ok(before[1] <= from, `two inside: until ${before[1]} and from ${from}`);
    assert.ok(BigInt(before[2]) < BigInt(token), `token ${token} after ${before[2]}`);
  }
});

test("threads of one process are as separate as processes: one that is terminated lets the next one in", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const [holder, waiter] = [startThread(t), startThread(t)];
  await holder.connect(path);
  await waiter.connect(path);
  await holder.acquire("x", TTL);
  assert.equal(await waiter.tryAcquire("x", TTL), null);
  const granted = waiter.acquire("x", TTL);
  await sleep(100);
  const endedAtMs = monotonicMs();
  await holder.thread.terminate();
  const { atMs } = await granted;
  assert.ok(atMs - endedAtMs < SOON_MS, `granted after ${atMs - endedAtMs} ms`);
});
