/** `semaphore`: at most so many at once. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { nowMs, pause, stillPending, within } from "../expect.ts";
import { refusesMinHold } from "./refusals.ts";

export const refusesLimits: NonNullable<CaseDefinition["otherwise"]> = {
  title: "semaphores are not offered: ConfigError at the call",
  body: async (stage) => {
    const locks = await stage.connect();
    assert.throws(() => locks.semaphore(stage.name, { permits: 2 }), { code: "CONFIG" });
  },
};

export const SEMAPHORE: readonly CaseDefinition[] = [
  {
    id: "semaphore/limit",
    title: "at most `permits` holders over several connections, and all of them are used",
    needs: { traits: ["limits"] },
    otherwise: refusesLimits,
    body: async (stage) => {
      const managers = await Promise.all([stage.connect(), stage.connect(), stage.connect()]);
      let inside = 0;
      let most = 0;
      const tokens = new Set<bigint>();
      const work = managers.flatMap((locks) => {
        const semaphore = locks.semaphore(stage.name, { permits: 3 });
        return Array.from({ length: 5 }, () =>
          semaphore.request(async (lock) => {
            tokens.add(lock.token);
            most = Math.max(most, ++inside);
            await pause(20);
            inside--;
          }),
        );
      });
      await within(2 * stage.hangMs, "all requests", Promise.all(work));
      assert.equal(most, 3);
      assert.equal(tokens.size, 15, "each permit has a token of its own");
    },
  },
  {
    id: "semaphore/out-of-order",
    title: "whichever holder leaves, the next waiter comes in",
    incidents: [68],
    needs: { traits: ["limits"] },
    otherwise: refusesLimits,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const permits = { permits: 3 };
      const [one, two] = [left.semaphore(stage.name, permits), right.semaphore(stage.name, permits)];
      const [first, second, third] = [await one.acquire(), await two.acquire(), await one.acquire()];
      const fourth = two.acquire();
      await stage.pending(left, 1);
      const fifth = one.acquire();
      // When the case fails, these end with their connections.
      for (const each of [fourth, fifth]) each.catch(() => {});
      await stage.pending(left, 2);
      await second.release();
      const locks = [first, third, await within(stage.hangMs, "the fourth", fourth)];
      await stillPending(50, "the fifth", fifth);
      await first.release();
      locks.push(await within(stage.hangMs, "the fifth", fifth));
      for (const lock of locks) await lock.release();
    },
  },
  {
    id: "semaphore/permits-changed",
    title: "permits changed while in use: the smallest number of those held and the own one counts",
    needs: { traits: ["limits"] },
    otherwise: refusesLimits,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const of = (permits: number) => right.semaphore(stage.name, { permits });
      const first = await left.semaphore(stage.name, { permits: 3 }).acquire();
      const second = await of(3).acquire();
      assert.equal(await of(2).tryAcquire(), null, "two are held already");
      const third = await of(5).acquire();
      assert.equal(await of(5).tryAcquire(), null, "those held still say three");
      await first.release();
      await second.release();
      const more = [await of(5).acquire(), await of(5).acquire()];
      assert.equal(await of(3).tryAcquire(), null);
      for (const lock of [third, ...more]) await lock.release();
    },
  },
  {
    id: "semaphore/leases",
    title: "a holder that is lost frees its own permit only",
    needs: { traits: ["limits"] },
    otherwise: refusesLimits,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const semaphore = left.semaphore(stage.name, { permits: 2 });
      const stays = await semaphore.acquire();
      const goes = await semaphore.acquire();
      const waiting = right.semaphore(stage.name, { permits: 2 }).acquire();
      await stage.pending(left, 1);
      assert.equal(await right.evict(stage.name, goes.token), true);
      const next = await within(stage.hangMs, "the waiter", waiting);
      await stays.renew();
      assert.ok(stays.isHeld());
      for (const lock of [stays, goes, next]) await lock.release();
    },
  },
  {
    id: "semaphore/rate",
    title: "permits with a minimum hold limit the rate, and nobody sleeps much longer than that",
    needs: { traits: ["limits", "minHold"] },
    otherwise: {
      title: "semaphores, or minimum holds, are not offered: ConfigError",
      body: (stage) => (stage.traits.limits ? refusesMinHold : refusesLimits).body(stage),
    },
    body: async (stage) => {
      const locks = await stage.connect();
      const minHoldMs = 400;
      const limited = locks.semaphore(stage.name, { permits: 2, minHoldMs });
      const startMs = nowMs();
      const at: number[] = [];
      const calls = Array.from({ length: 6 }, () => limited.request(() => void at.push(nowMs() - startMs)));
      await within(stage.hangMs, "six calls", Promise.all(calls));
      // Two permits are not enough for three: any three in a row span a minimum hold, by the engine's clock. Here an early
      // grant may be learned late.
      for (let index = 2; index < at.length; index++) {
        const span = (at[index] ?? 0) - (at[index - 2] ?? 0);
        assert.ok(span >= minHoldMs / 2, `call ${index} came ${span} ms after the one two before it`);
      }
      assert.ok((at.at(-1) ?? Infinity) < 2 * minHoldMs + stage.lateMs, `the last came after ${at.at(-1)} ms`);
    },
  },
];
