/** `acquireAll`: all or none, in one order, with one time-out and one signal; lost as soon as one is lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseEngine } from "../../../src/engine/lease-engine.ts";
import { connect } from "../../../src/index.ts";
import { memory } from "../../../src/engines/memory/index.ts";
import { MemorySpace } from "../../../src/engines/memory/space.ts";
import { MemoryStore } from "../../../src/engines/memory/store.ts";
import { inByteOrder } from "../../../src/lock/lock-set.ts";
import { Faults, FaultyStore } from "../../../src/testing/faulty-store.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

test("names are taken once each, in the order of their bytes", async () => {
  // UTF-16 would put the last two the other way round.
  assert.deepEqual(inByteOrder(["b", "\u{1F512}", "a", "\uFF5E", "b", "B"]), ["B", "a", "b", "\uFF5E", "\u{1F512}"]);
  const locks = await connect("memory:");
  const set = await locks.acquireAll(["b", "a", "b"]);
  assert.deepEqual(set.names, ["a", "b"]);
  assert.deepEqual([...set.tokens.keys()], ["a", "b"]);
  assert.deepEqual(
    set.locks.map((lock) => lock.token),
    [...set.tokens.values()],
  );
  assert.ok(set.isHeld() && set.remainingMs() > 0);
  set.assertHeld();
  await set.renew();
  assert.deepEqual(JSON.parse(JSON.stringify(set))[0], {
    name: "a",
    mode: "exclusive",
    token: String(set.tokens.get("a")),
  });
  assert.equal(await locks.tryAcquire("a"), null);
  await set.release();
  await set.release();
  assert.equal(set.isHeld(), false);
  assert.equal(set.remainingMs(), 0);
  assert.throws(() => set.assertHeld(), { code: "CLOSED" });
  assert.ok(await locks.tryAcquire("b"));
  await locks.close();
});

test("none when one cannot be had: one time-out for all, and nothing stays behind, not even a minimum hold", async () => {
  const clock = new ManualClock();
  const locks = await connect(memory({ clock }));
  const busy = await locks.acquire("b");
  const late = await locks.acquire("c");
  const all = locks.acquireAll(["a", "b", "c"], { waitMs: 1_000, minHoldMs: 60_000 });
  const refused = assert.rejects(all, { code: "LOCK_TIMEOUT", lockName: "c" });
  await clock.advance(600);
  await busy.release();
  await clock.advance(400);
  await refused;
  assert.ok(await locks.tryAcquire("a"));
  assert.ok(await locks.tryAcquire("b"));
  await late.release();
  assert.deepEqual((await locks.query()).pending, []);
  await assert.rejects(locks.acquireAll(["a", "z"], { waitMs: 0 }), { code: "LOCK_TIMEOUT", lockName: "a" });
  await locks.close();
});

test("an abort withdraws what is pending and gives back what is held", async () => {
  const locks = await connect("memory:");
  const busy = await locks.acquire("b");
  const controller = new AbortController();
  const all = locks.acquireAll(["a", "b"], { signal: controller.signal });
  setTimeout(() => controller.abort(new Error("enough")), 10);
  await assert.rejects(all, /enough/);
  assert.ok(await locks.tryAcquire("a"));
  assert.deepEqual((await locks.query()).pending, []);
  await busy.release();
  await locks.close();
});

test("incident 20: two that want the same names in opposite orders never wait in a circle", async () => {
  const locks = await connect("memory:");
  let rounds = 0;
  const worker = async (names: string[]) => {
    for (let round = 0; round < 50; round++) {
      const set = await locks.acquireAll(names, { waitMs: 10_000 });
      await new Promise(setImmediate);
      rounds++;
      await set.release();
    }
  };
  await Promise.all([worker(["a", "b", "c"]), worker(["c", "b", "a"]), worker(["b", "c"])]);
  assert.equal(rounds, 150);
  await locks.close();
});

test("lost as soon as one is lost; the others are held until released", async () => {
  const locks = await connect("memory:");
  const set = await locks.acquireAll(["a", "b"]);
  assert.equal(set.signal.aborted, false);
  await locks.evict("b", set.tokens.get("b") ?? 0n);
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(set.signal.aborted, true);
  assert.equal(set.signal.reason.lockName, "b");
  assert.equal(set.isHeld(), false);
  assert.throws(() => set.assertHeld(), { code: "LOCK_LOST", reason: "evicted", lockName: "b" });
  assert.equal(await locks.tryAcquire("a"), null);
  await set.release();
  assert.ok(await locks.tryAcquire("a"));
  await locks.close();
});

test("one that is lost while the others are awaited ends the wait", async () => {
  const locks = await connect("memory:");
  const busy = await locks.acquire("b");
  const all = locks.acquireAll(["a", "b"]);
  const refused = assert.rejects(all, { code: "LOCK_LOST", lockName: "a", reason: "evicted" });
  await new Promise((resolve) => setTimeout(resolve, 10));
  const [first] = (await locks.query({ prefix: "a" })).held;
  assert.ok(first?.token);
  await locks.evict("a", first.token);
  await refused;
  assert.deepEqual((await locks.query()).pending, []);
  await busy.release();
  await locks.close();
});

test("shared sets share; wrong names are refused before anything is taken", async () => {
  const locks = await connect("memory:");
  const one = await locks.acquireAll(["a", "b"], { mode: "shared" });
  const two = await locks.acquireAll(["b", "a"], { mode: "shared" });
  assert.ok(one.isHeld() && two.isHeld() && two.mode === "shared");
  await assert.rejects(locks.acquireAll([]), { code: "CONFIG" });
  await assert.rejects(locks.acquireAll("ab" as never), TypeError);
  await assert.rejects(locks.acquireAll(["c", ""]), { code: "CONFIG" });
  await assert.rejects(locks.acquireAll(["c", 3 as never]), TypeError);
  assert.ok(await locks.tryAcquire("c"));
  await locks.close();
});

test("a time-out is answered in time, although an engine that has frozen meanwhile takes nothing back yet", async () => {
  const clock = new ManualClock();
  const space = new MemorySpace();
  const faults = new Faults();
  const store = new FaultyStore(new MemoryStore(space, clock), faults, clock);
  const locks = await connect(new LeaseEngine(store, clock));
  const other = await connect(new LeaseEngine(new MemoryStore(space, clock), clock));
  const held = await other.acquire("b");
  let answer: unknown;
  locks.acquireAll(["a", "b"], { waitMs: 1_000 }).catch((error: unknown) => (answer = error));
  await clock.advance(500);
  faults.freeze();
  await clock.advance(501);
  assert.equal((answer as { code?: string } | undefined)?.code, "LOCK_TIMEOUT");
  faults.thaw();
  await held.release();
  await clock.advance(5_000);
  assert.deepEqual(await other.query(), { held: [], pending: [] });
  await Promise.all([locks.close(), other.close()]);
});
