import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/engine/clock.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

test("timers fire in the order of their times, each at its own", async () => {
  const clock = new ManualClock();
  const fired: [string, number][] = [];
  const note = (what: string) => () => fired.push([what, clock.monotonicMs()]);
  clock.after(30, note("c"));
  clock.after(10, note("a"));
  clock.after(10, note("b"));
  clock.after(41, note("late"));
  clock.after(20, note("never")).cancel();
  await clock.advance(40);
  assert.deepEqual(fired, [
    ["a", 10],
    ["b", 10],
    ["c", 30],
  ]);
  assert.equal(clock.monotonicMs(), 40);
  assert.equal(clock.timers, 1);
});

test("promises settle between timers, so a chain of waits runs through in one advance", async () => {
  const clock = new ManualClock();
  const seen: number[] = [];
  const chain = (async () => {
    for (let step = 0; step < 3; step++) {
      await sleep(clock, 10);
      await Promise.resolve().then(() => Promise.resolve());
      seen.push(clock.monotonicMs());
    }
  })();
  await clock.advance(30);
  await chain;
  assert.deepEqual(seen, [10, 20, 30]);
});

test("a timer set by a timer fires in the same advance when it is due", async () => {
  const clock = new ManualClock();
  let fired = 0;
  const rearm = (): void => {
    fired++;
    clock.after(10, rearm);
  };
  clock.after(10, rearm);
  await clock.advance(35);
  assert.equal(fired, 3);
});

test("a timer that re-arms itself at once for ever is told, not looped on", async () => {
  const clock = new ManualClock();
  const rearm = (): void => void clock.after(0, rearm);
  rearm();
  await assert.rejects(clock.advance(1), /timers fired in one instant/);
});

test("a blocked event loop: timers fire late", async () => {
  const clock = new ManualClock();
  let firedAt = 0;
  clock.after(10, () => (firedAt = clock.monotonicMs()));
  await clock.block(1_000);
  assert.equal(firedAt, 1_000);
});

test("the wall clock moves along, and jumps alone", async () => {
  const clock = new ManualClock({ wallMs: 5_000 });
  await clock.advance(100);
  clock.jumpWall(-1_000);
  assert.equal(clock.wallMs(), 4_100);
  assert.equal(clock.monotonicMs(), 100);
  await assert.rejects(clock.advance(-1), RangeError);
});

test("randomness is the seed's", () => {
  const draw = (seed: number): unknown[] => {
    const clock = new ManualClock({ seed });
    return [clock.random(), [...clock.randomBytes(16)], clock.random()];
  };
  assert.deepEqual(draw(7), draw(7));
  assert.notDeepEqual(draw(7), draw(8));
  const clock = new ManualClock();
  const numbers = Array.from({ length: 1_000 }, () => clock.random());
  assert.ok(numbers.every((each) => each >= 0 && each < 1));
  assert.equal(new Set(numbers).size, 1_000);
});

test("what keeps the process alive is counted", () => {
  const clock = new ManualClock();
  const first = clock.stayAlive();
  clock.stayAlive();
  first.cancel();
  first.cancel();
  assert.equal(clock.keptAliveBy, 1);
});
