/** Leases, boots, minimum holds and tokens, on a clock that stands still until it is moved. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../../../src/engine/lease-store.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { LockFile, renewOne, tokenOf } from "./stores.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

/** When a pending request has to ask again. */
function recheckMs(answer: Answer): number {
  if (answer.state !== "pending") throw new Error(`expected to wait, but: ${answer.state}`);
  return answer.recheckMs ?? Infinity;
}

test("a waiter is told when the lease ahead ends, and is let in then", async (t) => {
  const file = new LockFile(t);
  const holder = await file.visit();
  const waiter = await file.visit();
  tokenOf(await holder.store.request(file.ask({ ttlMs: 1_000 })));
  const ask = file.ask();
  const again = recheckMs(await waiter.store.request(ask));
  assert.ok(again >= 1_000 && again <= 1_002, `asks again after ${again} ms`);
  await file.clock.advance(900);
  assert.equal((await renewOne(waiter, ask)).state, "pending");
  await file.clock.advance(again - 900);
  tokenOf(await renewOne(waiter, ask));
});

test("a renewal never shortens a lease, and never revives one", async (t) => {
  const file = new LockFile(t);
  const holder = await file.visit();
  const ask = file.ask({ ttlMs: 10_000 });
  tokenOf(await holder.store.request(ask));
  await renewOne(holder, { ...ask, ttlMs: 100 });
  await file.clock.advance(9_000);
  tokenOf(await renewOne(holder, ask));
  await file.clock.advance(10_002);
  assert.deepEqual(await renewOne(holder, ask), { state: "gone", reason: "expired" });
});

test("a lapsed waiter is gone, and those behind it are let in before it", async (t) => {
  const file = new LockFile(t);
  const [holder, lapsed, last] = [await file.visit(), await file.visit(), await file.visit()];
  const first = file.ask({ ttlMs: DAY_MS });
  const token = tokenOf(await holder.store.request(first));
  const second = file.ask();
  const third = file.ask();
  await lapsed.store.request(second);
  await file.clock.advance(5_000);
  await last.store.request(third);
  await file.clock.advance(5_500);
  await holder.store.release("x", first.owner, token);
  assert.equal((await renewOne(last, third)).state, "held");
  assert.deepEqual(await renewOne(lapsed, second), { state: "gone", reason: "expired" });
});

test("a stolen and an evicted holder are told why they are gone, for as long as their lease would have been", async (t) => {
  const file = new LockFile(t);
  const [victim, thief] = [await file.visit(), await file.visit()];
  const stolen = file.ask({ ttlMs: 5_000 });
  tokenOf(await victim.store.request(stolen));
  const theft = file.ask({ steal: true });
  const token = tokenOf(await thief.store.request(theft));
  assert.deepEqual(await renewOne(victim, stolen), { state: "gone", reason: "stolen" });
  assert.equal(await victim.store.evict("x", token), true);
  assert.equal(await victim.store.evict("x", token), false);
  assert.deepEqual(await renewOne(thief, theft), { state: "gone", reason: "evicted" });
  await file.clock.advance(DAY_MS);
  const next = file.ask();
  tokenOf(await victim.store.request(next));
  await thief.store.request(file.ask({ steal: true }));
  assert.deepEqual(
    file.rows("SELECT owner, reason FROM ended").map((row) => ({ ...row })),
    [{ owner: next.owner, reason: "stolen" }],
  );
});

test("a request is idempotent by owner: asked twice it stands once", async (t) => {
  const file = new LockFile(t);
  const [one, two] = [await file.visit(), await file.visit()];
  const first = file.ask();
  const second = file.ask();
  const token = tokenOf(await one.store.request(first));
  assert.equal(tokenOf(await one.store.request(first)), token);
  await two.store.request(second);
  assert.equal((await two.store.request(second)).state, "pending");
  assert.equal((await one.store.inspect("x")).length, 2);
});

test("a release is of one hold: another token ends nothing", async (t) => {
  const file = new LockFile(t);
  const [one, two] = [await file.visit(), await file.visit()];
  const first = file.ask();
  const token = tokenOf(await one.store.request(first));
  const second = file.ask();
  await two.store.request(second);
  await one.store.release("x", first.owner, token - 1n);
  await one.store.release("x", "nobody", token);
  await two.store.release("x", second.owner, token);
  assert.deepEqual(
    (await one.store.inspect("x")).map((entry) => entry.token),
    [token, null],
  );
});

test("after a reboot an old holder is let be for one TTL from the first look, then it is over", async (t) => {
  const file = new LockFile(t);
  const before = await file.visit({ bootId: "boot 1" });
  tokenOf(await before.store.request(file.ask({ ttlMs: 2_000 })));
  // The new boot's clock begins again, so the old times mean nothing.
  const clock = new ManualClock({ seed: 2, monotonicMs: 10 });
  const cron = await file.visit({ bootId: "boot 2", clock });
  const ask = file.ask({ wait: false });
  assert.deepEqual(await cron.store.request(ask), { state: "busy" });
  await clock.advance(1_900);
  assert.deepEqual(await cron.store.request(ask), { state: "busy" });
  await clock.advance(110);
  // Not the one who looked first, but any later visitor of the same boot gets through.
  const later = await file.visit({ bootId: "boot 2", clock });
  tokenOf(await later.store.request(file.ask({ wait: false })));
});

test("a holder on another machine that shares the file is not declared dead while it renews", async (t) => {
  const file = new LockFile(t);
  const there = await file.visit({ bootId: "there" });
  const clock = new ManualClock({ seed: 3, monotonicMs: 10 });
  const here = await file.visit({ bootId: "here", clock });
  const held = file.ask({ ttlMs: 1_000 });
  tokenOf(await there.store.request(held));
  const waiting = file.ask();
  await here.store.request(waiting);
  for (let turn = 0; turn < 6; turn++) {
    await file.clock.advance(400);
    await clock.advance(400);
    tokenOf(await renewOne(there, held));
    assert.equal((await renewOne(here, waiting)).state, "pending");
  }
  await clock.advance(900);
  assert.equal((await renewOne(here, waiting)).state, "pending");
  await clock.advance(110);
  tokenOf(await renewOne(here, waiting));
});

test("two machines look at a dead third one, and neither keeps the other from taking over", async (t) => {
  const file = new LockFile(t);
  const dead = await file.visit({ bootId: "third" });
  tokenOf(await dead.store.request(file.ask({ ttlMs: 1_000 })));
  const clock = new ManualClock({ seed: 4, monotonicMs: 10 });
  const [left, right] = [await file.visit({ bootId: "left", clock }), await file.visit({ bootId: "right", clock })];
  const [one, two] = [file.ask({ wait: false }), file.ask({ wait: false })];
  assert.equal((await left.store.request(one)).state, "busy");
  await clock.advance(600);
  assert.equal((await right.store.request(two)).state, "busy");
  await clock.advance(500);
  tokenOf(await left.store.request(one));
});

test("a time that is too far ahead is on no clock of ours, whatever the boot says", async (t) => {
  const file = new LockFile(t, new ManualClock({ seed: 5, monotonicMs: DAY_MS }));
  const before = await file.visit();
  tokenOf(await before.store.request(file.ask({ ttlMs: 1_000 })));
  const clock = new ManualClock({ seed: 6, monotonicMs: 10 });
  const after = await file.visit({ clock });
  assert.equal((await after.store.request(file.ask({ wait: false }))).state, "busy");
  await clock.advance(1_010);
  tokenOf(await after.store.request(file.ask({ wait: false })));
});

test("a minimum hold outlives a reboot by the wall clock, and by no more than its own length", async (t) => {
  const file = new LockFile(t);
  const before = await file.visit();
  const once = file.ask({ minHoldMs: 600_000 });
  const token = tokenOf(await before.store.request(once));
  await before.store.release("x", once.owner, token);
  // The machine was away for five minutes.
  const clock = new ManualClock({ seed: 7, monotonicMs: 10, wallMs: file.clock.wallMs() + 300_000 });
  const after = await file.visit({ bootId: "boot 2", clock });
  assert.equal((await after.store.request(file.ask({ wait: false }))).state, "busy");
  await clock.advance(299_000);
  assert.equal((await after.store.request(file.ask({ wait: false }))).state, "busy");
  await clock.advance(2_000);
  const next = file.ask({ wait: false, minHoldMs: 60_000 });
  const nextToken = tokenOf(await after.store.request(next));
  await after.store.release("x", next.owner, nextToken);
  // Now the wall clock is an hour slow after the boot: what was seen bounds it.
  const slow = new ManualClock({ seed: 8, monotonicMs: 10, wallMs: clock.wallMs() - 3_600_000 });
  const last = await file.visit({ bootId: "boot 3", clock: slow });
  assert.equal((await last.store.request(file.ask({ wait: false }))).state, "busy");
  await slow.advance(61_000);
  tokenOf(await last.store.request(file.ask({ wait: false })));
});

test("incident 21: names leave nothing behind, and tokens still grow", async (t) => {
  const file = new LockFile(t);
  const visit = await file.visit();
  let last = 0n;
  for (let turn = 0; turn < 500; turn++) {
    const ask = file.ask({ name: `name ${turn}` });
    const token = tokenOf(await visit.store.request(ask));
    assert.ok(token > last);
    last = token;
    await visit.store.release(ask.name, ask.owner, token);
  }
  for (const table of ["request", "sighting", "ended"]) {
    assert.deepEqual(file.rows(`SELECT * FROM ${table}`), [], table);
  }
});

test("incident 21: rows of the dead go even if nobody asks for their names again", async (t) => {
  const file = new LockFile(t);
  const visit = await file.visit();
  for (let turn = 0; turn < 100; turn++) await visit.store.request(file.ask({ name: `name ${turn}`, ttlMs: 1_000 }));
  await file.clock.advance(2_000);
  // Each connection sweeps a part.
  for (let turn = 0; turn < 5; turn++) await (await file.visit()).store.close();
  assert.deepEqual(file.rows("SELECT name FROM request"), []);
});

test("incident 56: a jump of the wall clock, either way, ends no lease and keeps none", async (t) => {
  const file = new LockFile(t);
  const [holder, other] = [await file.visit(), await file.visit()];
  tokenOf(await holder.store.request(file.ask({ ttlMs: 10_000 })));
  const ask = file.ask({ wait: false });
  file.clock.jumpWall(DAY_MS);
  assert.equal((await other.store.request(ask)).state, "busy");
  file.clock.jumpWall(-2 * DAY_MS);
  assert.equal((await other.store.request(ask)).state, "busy");
  await file.clock.advance(10_002);
  tokenOf(await other.store.request(ask));
});

test("incident 57: tokens grow though the wall clock goes back", async (t) => {
  const file = new LockFile(t);
  const visit = await file.visit();
  let last = 0n;
  for (let turn = 0; turn < 20; turn++) {
    file.clock.jumpWall(turn % 2 === 0 ? -DAY_MS : DAY_MS / 2);
    const ask = file.ask({ name: turn % 3 === 0 ? "x" : "y" });
    const token = tokenOf(await visit.store.request(ask));
    assert.ok(token > last, `${token} after ${last}`);
    last = token;
    await visit.store.release(ask.name, ask.owner, token);
  }
});

test("incident 64: a minimum hold keeps the place after the release, and no longer", async (t) => {
  const file = new LockFile(t);
  const [job, other] = [await file.visit(), await file.visit()];
  const once = file.ask({ minHoldMs: 60_000 });
  const token = tokenOf(await job.store.request(once));
  await job.store.release("x", once.owner, token);
  await job.store.close();
  const [entry] = await other.store.inspect("x");
  assert.equal(entry?.token, token);
  assert.ok(entry.remainingMs !== null && entry.remainingMs > 59_000);
  const waiting = file.ask();
  const again = recheckMs(await other.store.request(waiting));
  assert.ok(again >= 60_000 && again <= 60_002, `asks again after ${again} ms`);
  for (let left = again; left > 9_000; left -= 9_000) {
    await file.clock.advance(9_000);
    assert.equal((await renewOne(other, waiting)).state, "pending");
  }
  await file.clock.advance(9_000);
  tokenOf(await renewOne(other, waiting));
});

test("a withdrawn request keeps no minimum hold", async (t) => {
  const file = new LockFile(t);
  const visit = await file.visit();
  const ask = file.ask({ minHoldMs: 60_000 });
  tokenOf(await visit.store.request(ask));
  await visit.store.withdraw("x", ask.owner);
  tokenOf(await visit.store.request(file.ask({ wait: false })));
});
