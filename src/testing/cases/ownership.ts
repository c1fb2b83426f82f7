/** S4 and S5: only the owner renews or releases; nobody is handed a lock that is over. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { pause, rejectsWith, within } from "../expect.ts";
import { HoldfastError } from "../../index.ts";
import { AdjustableClock } from "../pausable-clock.ts";

const OWNER_BITS = 128;

/** Whose `random` always says the same, and which counts the secrets that are drawn of it. */
class LoadedDice extends AdjustableClock {
  secrets = 0;

  override random(): number {
    return 0.5;
  }

  override randomBytes(size: number): Uint8Array {
    if (size * 8 >= OWNER_BITS) this.secrets++;
    return super.randomBytes(size);
  }
}

export const OWNERSHIP: readonly CaseDefinition[] = [
  {
    id: "S4/release-twice",
    title: "releasing twice harms nobody, least of all the next holder",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const first = await left.acquire(stage.name);
      await Promise.all([first.release(), first.release()]);
      const next = await right.acquire(stage.name);
      await first.release();
      await first[Symbol.asyncDispose]();
      await next.renew();
      assert.ok(next.isHeld());
      assert.equal(await left.tryAcquire(stage.name), null, "the second release freed the next holder's lock");
      await next.release();
    },
  },
  {
    id: "S4/release-after-loss",
    title: "releasing after a loss resolves quietly and leaves the next holder alone",
    incidents: [45],
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const victim = await left.acquire(stage.name);
      assert.ok(await right.evict(stage.name, victim.token));
      const next = await within(stage.takeoverMs, "the next holder", right.acquire(stage.name));
      await within(stage.hangMs, "releasing a lost lock", victim.release());
      await next.renew();
      assert.ok(next.isHeld());
      assert.equal(await left.tryAcquire(stage.name), null, "the late release freed the next holder's lock");
      await next.release();
    },
  },
  {
    id: "S4/release-crosses-eviction",
    title: "a release on its way while the lock passes on leaves the next holder alone",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      for (let round = 0; round < 6; round++) {
        const victim = await left.acquire(stage.name);
        const waiting = right.acquire(stage.name);
        await stage.pending(right, 1);
        const evicting = right.evict(stage.name, victim.token);
        if (round % 2 > 0) await evicting;
        await Promise.all([evicting, victim.release()]);
        const next = await within(stage.takeoverMs, "the next holder", waiting);
        await next.renew();
        assert.equal(await left.tryAcquire(stage.name), null, "the late release freed the next holder's lock");
        await next.release();
      }
    },
  },
  {
    id: "S4/renew-after-loss",
    title: "renewing after a loss rejects and renews nobody's lock",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const victim = await left.acquire(stage.name);
      assert.ok(await right.evict(stage.name, victim.token));
      const next = await within(stage.takeoverMs, "the next holder", right.acquire(stage.name));
      await rejectsWith("LOCK_LOST", victim.renew());
      assert.equal(victim.isHeld(), false);
      await next.release();
      await stage.gone(right, stage.lateMs);
    },
  },
  {
    id: "S4/owners",
    title: "owners are secrets of 128 bits, one per request: a generator that repeats itself confuses nobody",
    incidents: [9],
    needs: { hooks: ["connectWithClock"] },
    body: async (stage) => {
      const dice = [new LoadedDice(), new LoadedDice()] as const;
      const [left, right] = await Promise.all(dice.map((each) => stage.connectWithClock(each)));
      assert.ok(left && right);
      const before = dice[0].secrets;
      for (let round = 1; round <= 4; round++) {
        const lock = await left.acquire(stage.name);
        assert.ok(dice[0].secrets - before >= round, `${dice[0].secrets - before} secrets for ${round} requests`);
        assert.equal(await right.tryAcquire(stage.name), null);
        assert.equal(await left.tryAcquire(stage.name), null, "another request of one client passes for the holder's");
        await lock.release();
      }
    },
  },
  {
    id: "S4/others-close",
    title: "a connection that closes releases its own locks only",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await left.acquire(stage.name);
      await right.close();
      await lock.renew();
      assert.ok(lock.isHeld());
      const third = await stage.connect();
      assert.equal(await third.tryAcquire(stage.name), null);
      await lock.release();
    },
  },
  {
    id: "S5/stopped-waiter",
    title: "a waiter that is stopped past its lease never wakes to a lock that is over",
    incidents: [2, 31],
    needs: { peers: "sharing" },
    body: async (stage) => {
      const locks = await stage.connect();
      const peer = await stage.peer();
      const holder = await locks.acquire(stage.name);
      const acquiring = peer.acquire("lock", stage.name);
      await stage.pending(locks, 1);
      peer.pause();
      await pause(stage.ttlMs / 2);
      await holder.release();
      await pause(stage.ttlMs);
      peer.resume();
      const look = await within(stage.takeoverMs + stage.hangMs, "the waiter that was stopped", acquiring);
      assert.ok(look.held, "acquire resolved with a lock that is over");
      assert.ok(look.remainingMs > 0);
      assert.ok(look.token > holder.token);
      assert.equal(await locks.tryAcquire(stage.name), null);
      await peer.release("lock");
    },
  },
  {
    id: "S5/slow-answer",
    title: "a grant whose answer took longer than the lease is not handed over",
    incidents: [2, 31],
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const locks = await stage.connect();
      const thaw = await stage.freeze();
      const acquiring = locks.acquire(stage.name).then(
        (lock) => {
          const held = lock.isHeld() && lock.remainingMs() > 0;
          return { held, lock };
        },
        (error: unknown) => ({ error }),
      );
      await pause(stage.ttlMs * 1.3);
      await thaw();
      const outcome = await within(stage.takeoverMs + stage.hangMs, "acquiring from a slow engine", acquiring);
      if ("error" in outcome) {
        assert.ok(outcome.error instanceof HoldfastError && outcome.error.code === "ENGINE_UNAVAILABLE");
      } else {
        assert.ok(outcome.held, "acquire resolved with a lock that is over");
        await outcome.lock.release();
      }
      await stage.gone(await stage.connect());
    },
  },
];
