/** What is left of an engine once it is closed: nothing that still runs. Found by the fault suite. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Timer } from "../../../src/index.ts";
import { PausableClock } from "../../../src/testing/pausable-clock.ts";
import { database, locksOn } from "./database.ts";

const server = database();

/** Knows how many of its timers have neither fired nor been cancelled. */
class CountingClock extends PausableClock {
  readonly waiting = new Set<object>();

  override after(delayMs: number, run: () => void): Timer {
    const mark = {};
    this.waiting.add(mark);
    const timer = super.after(delayMs, () => {
      this.waiting.delete(mark);
      run();
    });
    return {
      cancel: () => {
        this.waiting.delete(mark);
        timer.cancel();
      },
    };
  }
}

void test("sessions that slept on bells leave no timer behind when the engine is closed", async (t) => {
  const clock = new CountingClock();
  const here = await locksOn(t, await server(), { clock });
  const there = await locksOn(t, await server());
  for (let turn = 0; turn < 5; turn++) {
    const lock = await there.acquire("report");
    const waiting = here.acquire("report");
    while ((await there.query({ name: "report" })).pending.length === 0);
    await lock.release();
    await (await waiting).release();
  }
  await here.close();
  assert.equal(clock.waiting.size, 0);
});
