/** The handle: what it says, and when. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { pause, rejectsWith, within } from "../expect.ts";

/** How many commands an idle connection may cost in a while. */
const FEW_COMMANDS = 2;

export const HANDLE: readonly CaseDefinition[] = [
  {
    id: "handle/fields",
    title: "says its name, mode and token; toJSON gives the token as a string",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name);
      assert.equal(lock.name, stage.name);
      assert.equal(lock.mode, "exclusive");
      assert.ok(lock.token > 0n && lock.token < 2n ** 63n);
      assert.deepEqual(JSON.parse(JSON.stringify(lock)), {
        name: stage.name,
        mode: "exclusive",
        token: String(lock.token),
      });
      await lock.release();
    },
  },
  {
    id: "handle/while-held",
    title: "while held: isHeld, assertHeld, remainingMs and an open signal",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name);
      assert.equal(lock.isHeld(), true);
      lock.assertHeld();
      assert.ok(lock.remainingMs() > 0);
      assert.equal(lock.signal.aborted, false);
      assert.equal(lock.signal, lock.signal);
      await lock.release();
    },
  },
  {
    id: "handle/after-release",
    title: "after release: not held, nothing remains, renew rejects, and the signal has not aborted",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name);
      const releasing = lock.release();
      assert.equal(lock.isHeld(), false, "held while its release is under way");
      await releasing;
      assert.equal(lock.isHeld(), false);
      assert.equal(lock.remainingMs(), 0);
      assert.throws(() => lock.assertHeld(), { code: "CLOSED" });
      await rejectsWith("CLOSED", lock.renew());
      await pause(30);
      assert.equal(lock.signal.aborted, false);
      await lock.release();
    },
  },
  {
    id: "handle/dispose",
    title: "await using releases; using without await cannot be written",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await left.acquire(stage.name);
      assert.equal(Symbol.dispose in lock, false);
      await lock[Symbol.asyncDispose]();
      const next = await right.tryAcquire(stage.name);
      assert.ok(next);
      await next[Symbol.asyncDispose]();
    },
  },
  {
    id: "handle/renew",
    title: "renew makes the lease full again",
    needs: { traits: ["lease"] },
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name, { ttlMs: 20_000 });
      await pause(200);
      const before = lock.remainingMs();
      await lock.renew();
      assert.ok(lock.remainingMs() > before + 100);
      assert.ok(lock.isHeld());
      await lock.release();
    },
  },
  {
    id: "handle/late-renewal",
    title: "a renewal under way when the lock is released changes nothing",
    incidents: [13],
    needs: {},
    body: async (stage) => {
      // A place that the renewal had taken anew would stay for so long.
      const locks = await stage.connect({ ttlMs: 60_000 });
      const lock = await locks.acquire(stage.name);
      const renewing = lock.renew().catch(() => {});
      await lock.release();
      await renewing;
      await pause(20);
      assert.equal(lock.isHeld(), false);
      assert.equal(lock.signal.aborted, false);
      await stage.gone(locks, stage.lateMs);
    },
  },
  {
    id: "handle/renewals-end",
    title: "however soon a lock is released, nothing of it is renewed afterwards",
    incidents: [13],
    needs: { hooks: ["countCommands"], traits: ["lease"] },
    body: async (stage) => {
      const ttlMs = 600;
      const locks = await stage.connect({ ttlMs });
      const count = stage.hook("countCommands");
      const idle = async (): Promise<number> => {
        const before = await count();
        await pause(2 * ttlMs);
        return (await count()) - before;
      };
      await locks.request(stage.name, () => {});
      const atFirst = await idle();
      for (let turn = 0; turn < 20; turn++) await locks.request(`${stage.name} ${turn}`, () => {});
      const afterwards = await idle();
      // A hold that is forgotten would be renewed six times.
      assert.ok(afterwards <= FEW_COMMANDS, `${afterwards} commands with nothing held, ${atFirst} before`);
      assert.ok(atFirst <= FEW_COMMANDS, `${atFirst} commands with nothing held`);
    },
  },
  {
    id: "handle/of-its-own",
    title: "the state is the handle's own: an earlier hold of the name says nothing about the later one",
    incidents: [18],
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const first = await locks.acquire(stage.name);
      await first.release();
      assert.equal(first.remainingMs(), 0);
      const second = await locks.acquire(stage.name, { ttlMs: 20_000 });
      assert.equal(first.isHeld(), false);
      assert.equal(second.isHeld(), true);
      // Session engines set the lease themselves.
      if (stage.traits.lease === "lease") assert.ok(second.remainingMs() > 10_000, "the earlier lease's time");
      assert.notEqual(first.token, second.token);
      assert.notEqual(first.signal, second.signal);
      await within(stage.lateMs, "releasing", Promise.all([first.release(), second.release()]));
    },
  },
];
