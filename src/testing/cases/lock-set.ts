/** `acquireAll`: several names at once. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { aborted, rejection, rejectsWith, within } from "../expect.ts";
import { LockLostError, LockTimeoutError } from "../../index.ts";

export const LOCK_SET: readonly CaseDefinition[] = [
  {
    id: "acquireAll/all",
    title: "takes each name once, in the order of their bytes, and gives all back",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const [a, b, c] = [`${stage.name} a`, `${stage.name} b`, `${stage.name} c`];
      const set = await locks.acquireAll([c, a, b, a]);
      assert.deepEqual(set.names, [a, b, c]);
      assert.ok(set.isHeld() && set.remainingMs() > 0);
      for (const lock of set.locks) assert.equal(set.tokens.get(lock.name), lock.token);
      for (const name of set.names) assert.equal(await other.tryAcquire(name), null);
      await set.renew();
      await set.release();
      await set.release();
      const again = await other.acquireAll([b, c, a], { waitMs: stage.hangMs });
      await again.release();
    },
  },
  {
    id: "acquireAll/none",
    title: "one time-out for all: what was taken is given back, and nothing stays behind",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const [a, b, c] = [`${stage.name} a`, `${stage.name} b`, `${stage.name} c`];
      const busy = await other.acquire(c);
      const error = await within(
        stage.hangMs,
        "the time-out",
        rejection(locks.acquireAll([a, b, c], { waitMs: 1_500 })),
      );
      assert.ok(error instanceof LockTimeoutError);
      assert.ok([a, b, c].includes(error.lockName), "it names the one that was not had in time");
      const free = await other.acquireAll([a, b], { waitMs: stage.hangMs });
      await free.release();
      await busy.release();
      await stage.gone(locks, stage.takeoverMs);
    },
  },
  {
    id: "acquireAll/signal",
    title: "one signal for all: an abort withdraws and gives back",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const [a, b] = [`${stage.name} a`, `${stage.name} b`];
      const busy = await other.acquire(b);
      const controller = new AbortController();
      const all = rejection(locks.acquireAll([a, b], { signal: controller.signal }));
      await stage.pending(other, 1, b);
      controller.abort("enough");
      assert.equal(await within(stage.lateMs, "the abort", all), "enough");
      const free = await other.acquire(a, { waitMs: stage.hangMs });
      await free.release();
      await busy.release();
    },
  },
  {
    id: "acquireAll/circle",
    title: "two that want the same names in opposite orders both get them",
    incidents: [20],
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const names = [`${stage.name} a`, `${stage.name} b`, `${stage.name} c`];
      let inside = 0;
      const work = async (locks: typeof left, wanted: readonly string[]): Promise<void> => {
        for (let turn = 0; turn < 8; turn++) {
          const set = await locks.acquireAll(wanted);
          assert.equal(++inside, 1);
          await new Promise(setImmediate);
          inside--;
          await set.release();
        }
      };
      const both = Promise.all([work(left, names), work(right, names.toReversed())]);
      await within(2 * stage.hangMs, "sixteen turns", both);
    },
  },
  {
    id: "acquireAll/lost",
    title: "lost as soon as one is lost",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const [a, b] = [`${stage.name} a`, `${stage.name} b`];
      const set = await locks.acquireAll([a, b]);
      const lost = aborted(set.signal);
      assert.equal(await locks.evict(b, set.tokens.get(b) ?? 0n), true);
      const reason = await within(stage.takeoverMs, "the signal", lost);
      assert.ok(reason instanceof LockLostError);
      assert.equal(reason.lockName, b);
      assert.equal(set.isHeld(), false);
      assert.throws(() => set.assertHeld(), { code: "LOCK_LOST" });
      await set.release();
      await (await locks.acquireAll([a, b], { waitMs: stage.hangMs })).release();
    },
  },
  {
    id: "acquireAll/lost-meanwhile",
    title: "one that is lost while another is awaited ends the wait",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const [a, b] = [`${stage.name} a`, `${stage.name} b`];
      const busy = await other.acquire(b);
      const all = locks.acquireAll([a, b]);
      const refused = rejectsWith("LOCK_LOST", within(stage.hangMs, "the loss", all));
      await stage.pending(other, 1, b);
      const token = (await stage.queue(other, a)).held[0]?.token;
      assert.ok(token);
      assert.equal(await other.evict(a, token), true);
      await refused;
      await busy.release();
      await (await other.acquireAll([a, b], { waitMs: stage.hangMs })).release();
    },
  },
];
