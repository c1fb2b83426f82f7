/** Locks on a clock that stands still: what the guide on testing shows, and what no real clock could show so exactly. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { memory } from "../../src/engines/memory/index.ts";
import { connect, LockLostError, type LeaseOptions, type LockManager } from "../../src/index.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

interface Still {
  readonly clock: ManualClock;
  readonly locks: LockManager;
}

async function still(defaults?: LeaseOptions): Promise<Still> {
  const clock = new ManualClock();
  return { clock, locks: await connect(memory({ clock }), defaults) };
}

void test("the example of the guide: the longest hold ends to the millisecond", async () => {
  const { clock, locks } = await still();
  const lock = await locks.acquire("report", { maxHoldMs: 60_000 });
  await clock.advance(59_999);
  assert.equal(lock.isHeld(), true);
  await clock.advance(1);
  assert.equal(lock.isHeld(), false);
  assert.ok(lock.signal.reason instanceof LockLostError);
  assert.equal(lock.signal.reason.reason, "max-hold");
});

void test("a time-out comes when its time has come, not before", async () => {
  const { clock, locks } = await still();
  await locks.acquire("busy");
  let outcome = "pending";
  locks.acquire("busy", { waitMs: 5_000 }).catch((error: unknown) => (outcome = (error as Error).name));
  await clock.advance(4_999);
  assert.equal(outcome, "pending");
  await clock.advance(1);
  assert.equal(outcome, "TimeoutError");
});

void test("a lock is held for a day, renewed all the time, and given back without a trace", async () => {
  const { clock, locks } = await still({ ttlMs: 30_000 });
  const lock = await locks.acquire("long");
  for (let hour = 0; hour < 24; hour++) {
    await clock.advance(3_600_000);
    assert.ok(lock.isHeld());
    assert.ok(lock.remainingMs() > 15_000);
  }
  await lock.release();
  await locks.close();
  assert.equal(clock.keptAliveBy, 0);
  assert.equal(clock.timers, 0, "a timer stayed behind");
});

void test("a minimum hold ends to the millisecond, and the waiter has the lock then", async () => {
  const { clock, locks } = await still();
  const lock = await locks.acquire("tick", { minHoldMs: 10_000 });
  await lock.release();
  let granted = false;
  void locks.request("tick", () => void (granted = true));
  await clock.advance(9_999);
  assert.equal(granted, false);
  await clock.advance(2);
  assert.equal(granted, true);
});

void test("an event loop blocked for longer than the lease: not held before any timer has run, then lost", async () => {
  const { clock, locks } = await still({ ttlMs: 1_000 });
  const lock = await locks.acquire("blocked");
  const { signal } = lock;
  const blocked = clock.block(1_500);
  assert.equal(lock.isHeld(), false);
  assert.equal(signal.aborted, false);
  await blocked;
  assert.ok(signal.reason instanceof LockLostError);
  assert.equal(signal.reason.reason, "expired");
});

void test("a suspended machine: uncertain at once, confirmed by a renewal", async () => {
  const { clock, locks } = await still({ ttlMs: 60_000 });
  const lock = await locks.acquire("suspended");
  clock.jumpWall(3_600_000);
  assert.equal(lock.isHeld(), false);
  await clock.settle();
  assert.equal(lock.isHeld(), true);
  assert.equal(lock.signal.aborted, false);
});
