/** The list of the commands that wait for an answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { InFlight, type Waiting } from "../../src/redis/in-flight.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

test("expiring calls back what is due, in order, whatever the callbacks add and remove", async () => {
  const clock = new ManualClock();
  const inFlight = new InFlight(clock);
  const expired: string[] = [];
  const listed: Waiting[] = [];
  const add = (name: string, ms: number, then = () => {}) => {
    listed.push(
      inFlight.add(ms, () => {
        expired.push(`${name} at ${clock.monotonicMs()}`);
        then();
      }),
    );
  };
  add("late", 30);
  add("first", 10, () => {
    add("again", 5);
    for (const n of [0, 2, 3]) inFlight.remove(listed[n] ?? assert.fail());
    add("soon", 0);
  });
  add("answered just now", 10);
  add("answered", 20);
  add("last", 10);
  await clock.advance(100);
  assert.deepEqual(expired, ["first at 10", "last at 10", "soon at 10", "again at 15"]);
  assert.equal(clock.timers, 0);

  add("one", 10, () => add("after the end", 10));
  add("two", 20);
  inFlight.clear();
  assert.deepEqual(expired.slice(4), ["one at 100", "two at 100"]);
  await clock.advance(10);
  assert.deepEqual(expired.slice(6), ["after the end at 110"]);
});

test("a command that never gets its answer keeps none of those behind it in memory", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const inFlight = new InFlight(new ManualClock());
  const never = inFlight.add(1_000, () => {});
  const behind = overlapping(inFlight, never);
  await turn();
  collect();
  assert.equal(behind.deref(), undefined);
  assert.equal(inFlight.remove(never), false);
});

/** Each is removed once the next has come. Returns one in the middle. */
function overlapping(inFlight: InFlight, first: Waiting): WeakRef<Waiting> {
  let before = first;
  let middle = new WeakRef(first);
  for (let n = 0; n < 10; n++) {
    const next = inFlight.add(1_000, () => {});
    inFlight.remove(before);
    before = next;
    if (n === 5) middle = new WeakRef(next);
  }
  return middle;
}
