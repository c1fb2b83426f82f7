/** `mutex`: one name with defaults, and its re-entrant form. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { pause, rejectsWith, within } from "../expect.ts";

export const MUTEX: readonly CaseDefinition[] = [
  {
    id: "mutex/verbs",
    title: "request, acquire and tryAcquire are those of the manager, for one name and with defaults",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const mutex = locks.mutex(stage.name, { waitMs: 100 });
      const held = await mutex.acquire({ waitMs: stage.hangMs });
      assert.equal(held.name, stage.name);
      assert.equal(await other.mutex(stage.name).tryAcquire(), null);
      await rejectsWith("LOCK_TIMEOUT", mutex.acquire());
      await held.release();
      const result = await mutex.request({ waitMs: stage.hangMs }, async (lock) => {
        assert.equal(await other.tryAcquire(stage.name), null);
        return lock.isHeld();
      });
      assert.equal(result, true);
      const free = await other.mutex(stage.name).tryAcquire();
      assert.ok(free);
      await free.release();
    },
  },
  {
    id: "mutex/reentrant",
    title: "a re-entrant request inside its own callback goes on under the same hold, until the outermost ends",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const mutex = locks.mutex(stage.name, { reentrant: true });
      const order: string[] = [];
      const branch = (label: string): Promise<void> =>
        mutex.request(async () => {
          order.push(`${label} in`);
          await mutex.request(() => pause(5));
          order.push(`${label} out`);
        });
      const nested = mutex.request(async (outer) => {
        const token = await mutex.request((inner) => inner.token);
        assert.equal(token, outer.token);
        assert.equal(await other.tryAcquire(stage.name), null, "given back by the inner one");
        await Promise.all([branch("left"), branch("right")]);
        assert.ok(outer.isHeld());
      });
      await within(stage.hangMs, "nested requests", nested);
      assert.deepEqual(order, ["left in", "left out", "right in", "right out"]);
      const next = await other.tryAcquire(stage.name);
      assert.ok(next, "not given back at the end");
      await next.release();
    },
  },
  {
    id: "mutex/reentrant-late",
    title: "a branch that enters again when the hold has been released is refused",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const mutex = locks.mutex(stage.name, { reentrant: true });
      const late = Promise.withResolvers<void>();
      const stray = await mutex.request(() => ({ entering: late.promise.then(() => mutex.request(() => {})) }));
      late.resolve();
      await rejectsWith("CLOSED", stray.entering);
      await mutex.request(() => {});
    },
  },
  {
    id: "mutex/reentrant-loss",
    title: "a loss rejects the requests of every level",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const mutex = locks.mutex(stage.name, { reentrant: true });
      const outer = mutex.request(async (lock) => {
        const inner = mutex.request(async () => {
          await locks.evict(stage.name, lock.token);
          await lock.renew().catch(() => {});
        });
        await rejectsWith("LOCK_LOST", inner);
      });
      await rejectsWith("LOCK_LOST", within(stage.hangMs, "the outer request", outer));
    },
  },
];
