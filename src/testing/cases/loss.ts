/** Deadline and loss: who holds a lock is told, in time, and never by a crash. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { aborted, eventually, nowMs, pause, rejectsWith, timed, unhandledErrors, within } from "../expect.ts";
import { EngineUnavailableError, HoldfastError, LockLostError, type LossReason } from "../../index.ts";
import { AdjustableClock } from "../pausable-clock.ts";
import type { Stage } from "../stage.ts";

function assertLost(reason: unknown, why: LossReason, name: string): void {
  assert.ok(reason instanceof LockLostError, `the signal's reason is ${String(reason)}`);
  assert.deepEqual([reason.code, reason.reason, reason.lockName], ["LOCK_LOST", why, name]);
}

/** What a session engine calls a lease that ran out. */
function expiry(stage: Stage, reason: unknown): LossReason {
  const session = stage.traits.lease === "session" && reason instanceof LockLostError && reason.reason === "session";
  return session ? "session" : "expired";
}

const told: CaseDefinition[] = [
  {
    id: "loss/evicted",
    title: "the signal aborts with LockLostError by the next renewal, and everything else says so",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await locks.acquire(stage.name);
      const losing = aborted(lock.signal);
      assert.ok(await other.evict(stage.name, lock.token));
      assertLost(await within(stage.takeoverMs, "telling the holder", losing), "evicted", stage.name);
      assert.equal(lock.isHeld(), false);
      assert.equal(lock.remainingMs(), 0);
      assert.throws(() => lock.assertHeld(), { code: "LOCK_LOST" });
      await rejectsWith("LOCK_LOST", lock.renew());
      await lock.release();
    },
  },
  {
    id: "loss/signal-asked-for-late",
    title: "a signal that is asked for after the loss has aborted",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await locks.acquire(stage.name);
      assert.ok(await other.evict(stage.name, lock.token));
      await eventually(stage.takeoverMs, "the holder knows", () => !lock.isHeld());
      assert.equal(lock.signal.aborted, true);
      assertLost(lock.signal.reason, "evicted", stage.name);
    },
  },
  {
    id: "loss/scoped",
    title: "request rejects with LockLostError if the lock was lost, whatever the callback returned",
    incidents: [7],
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      // It looks neither at its signal nor at the handle.
      const losing = locks.request(stage.name, async (lock) => {
        assert.ok(await other.evict(stage.name, lock.token));
        await pause(stage.ttlMs);
        return "looks fine";
      });
      const error = await rejectsWith("LOCK_LOST", within(stage.ttlMs + stage.takeoverMs, "the scoped form", losing));
      assertLost(error, "evicted", stage.name);
      assert.equal(error.cause, undefined);
    },
  },
  {
    id: "loss/scoped-cause",
    title: "an error that the callback threw after the loss is the cause",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const own = new Error("the payment failed");
      const losing = locks.request(stage.name, async (lock) => {
        assert.ok(await other.evict(stage.name, lock.token));
        await aborted(lock.signal);
        throw own;
      });
      const error = await rejectsWith("LOCK_LOST", within(stage.takeoverMs, "the scoped form", losing));
      assert.equal(error.cause, own);
    },
  },
  {
    id: "loss/next-is-served",
    title: "whoever waits behind a lock that was lost is served",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name);
      await stage.pending(left, 1);
      assert.ok(await left.evict(stage.name, lock.token));
      const next = await within(stage.takeoverMs, "the next one", waiting);
      assert.ok(next.token > lock.token);
      await next.release();
    },
  },
  {
    id: "loss/session",
    title: 'the end of the session is told at once, reason "session"',
    incidents: [26],
    needs: { traits: ["session"], hooks: ["loseSession"] },
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await locks.acquire(stage.name);
      const losing = aborted(lock.signal);
      await stage.loseSession(locks);
      assertLost(await within(stage.takeoverMs, "telling the holder", losing), "session", stage.name);
      assert.equal(lock.isHeld(), false);
      const next = await within(stage.takeoverMs, "the next one", other.acquire(stage.name));
      await next.release();
      const again = await within(stage.takeoverMs + stage.hangMs, "a new session", locks.acquire(stage.name));
      await again.release();
    },
  },
];

const silent: CaseDefinition[] = [
  {
    id: "loss/frozen-engine",
    title: "when no reply ever comes, the signal aborts by the deadline and release resolves quietly",
    incidents: [3, 4, 35],
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name);
      const losing = aborted(lock.signal);
      const thaw = await stage.freeze();
      const frozenMs = nowMs();
      const leftMs = lock.remainingMs();
      const reason = await within(leftMs + stage.lateMs, "the signal", losing);
      assertLost(reason, expiry(stage, reason), stage.name);
      assert.ok(nowMs() - frozenMs <= leftMs + stage.lateMs);
      assert.equal(lock.isHeld(), false);
      const releasedMs = await timed(() => lock.release());
      assert.ok(releasedMs < stage.lateMs / 2, `releasing what is over took ${releasedMs} ms`);
      await thaw();
      const next = await within(stage.takeoverMs + stage.hangMs, "acquiring after the thaw", locks.acquire(stage.name));
      assert.ok(next.token > lock.token);
      await next.release();
    },
  },
  {
    id: "loss/release-while-frozen",
    title: "release on a frozen engine resolves when the lease has run out, without throwing",
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name);
      const thaw = await stage.freeze();
      await within(stage.takeoverMs, "releasing on a frozen engine", lock.release());
      assert.equal(lock.isHeld(), false);
      assert.equal(lock.signal.aborted, false);
      await thaw();
      await stage.gone(locks);
    },
  },
  {
    id: "loss/short-freeze",
    title: "an engine that is away for less than the lease loses nothing: renewals are retried",
    incidents: [15],
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const ttlMs = 1.5 * stage.steadyTtlMs;
      const locks = await stage.connect({ ttlMs });
      const lock = await locks.acquire(stage.name);
      const leaseMs = Math.min(ttlMs, lock.remainingMs());
      // From just before a renewal is due until it has been given up for want of an answer.
      await pause(leaseMs * 0.28);
      const thaw = await stage.freeze();
      await pause(leaseMs * 0.38);
      await thaw();
      await pause(ttlMs * 0.6);
      assert.ok(lock.isHeld());
      assert.equal(lock.signal.aborted, false);
      await lock.release();
    },
  },
  {
    id: "loss/cut-connections",
    title: "a cut connection loses nothing when a new one can be made in time",
    incidents: [15, 30],
    needs: { hooks: ["cutConnections"] },
    body: async (stage) => {
      const ttlMs = stage.steadyTtlMs;
      const [locks, other] = await Promise.all([stage.connect({ ttlMs }), stage.connect({ ttlMs })]);
      const lock = await locks.acquire(stage.name);
      const waiting = other.acquire(stage.name);
      await stage.pending(locks, 1);
      await stage.hook("cutConnections")();
      await pause(ttlMs * 1.3);
      assert.ok(lock.isHeld());
      assert.equal(lock.signal.aborted, false);
      await lock.release();
      await (await within(stage.takeoverMs, "a waiter whose connection was cut", waiting)).release();
    },
  },
  {
    id: "loss/killed-server",
    title: "while the server is dead the signal aborts by the deadline, calls are answered, and nothing is unhandled",
    incidents: [5, 11],
    needs: { hooks: ["killServer"] },
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await locks.acquire(stage.name);
      const losing = aborted(lock.signal);
      const waiting = other.acquire(stage.name).then(
        (next) => next.release(),
        (error: unknown) => assert.ok(error instanceof EngineUnavailableError, String(error)),
      );
      await stage.pending(locks, 1);
      const unhandled = unhandledErrors();
      try {
        const restart = await stage.kill();
        const reason = await within(lock.remainingMs() + stage.lateMs, "the signal", losing);
        assertLost(reason, expiry(stage, reason), stage.name);
        assert.equal(lock.isHeld(), false);
        const answer = locks
          .acquire(`${stage.name} meanwhile`, { waitMs: stage.ttlMs / 4 })
          .catch((error: unknown) => error);
        assert.ok((await within(stage.ttlMs + stage.lateMs, "an answer", answer)) instanceof HoldfastError);
        await restart();
        await within(stage.takeoverMs + stage.hangMs, "the waiter", waiting);
        await eventually(stage.takeoverMs + stage.hangMs, "locks work again", async () => {
          const next = await locks.acquire(stage.name).catch(() => null);
          assert.ok(next === null || next.token > lock.token);
          await next?.release();
          return next !== null;
        });
      } finally {
        assert.deepEqual(unhandled.end(), []);
      }
    },
  },
  {
    id: "loss/restart",
    title: "a held lock survives a restart of the server with its data",
    needs: { traits: ["restart"], hooks: ["restartServer"] },
    body: async (stage) => {
      const ttlMs = Math.max(stage.ttlMs, 5_000);
      const locks = await stage.connect({ ttlMs });
      const lock = await locks.acquire(stage.name);
      await stage.hook("restartServer")();
      await pause(ttlMs / 2);
      assert.ok(lock.isHeld());
      const other = await stage.connect();
      assert.equal(await other.tryAcquire(stage.name), null);
      await lock.release();
    },
  },
  {
    id: "loss/suspend-confirmed",
    title: "after a suspend the lock is uncertain: not held until a renewal has confirmed it, and then it goes on",
    needs: { hooks: ["connectWithClock"] },
    body: async (stage) => {
      const clock = new AdjustableClock();
      const locks = await stage.connectWithClock(clock, { ttlMs: 10_000 });
      const lock = await locks.acquire(stage.name);
      assert.ok(lock.isHeld());
      clock.jumpWall(60_000);
      assert.equal(lock.isHeld(), false, "held although the clocks disagree");
      await eventually(stage.takeoverMs, "a renewal confirms it", () => lock.isHeld());
      assert.equal(lock.signal.aborted, false);
      clock.jumpWall(-120_000);
      assert.equal(lock.isHeld(), false, "held although the wall clock was set back");
      await eventually(stage.takeoverMs, "a renewal confirms it", () => lock.isHeld());
      await lock.release();
    },
  },
  {
    id: "loss/suspend-noticed",
    title: "a suspend is noticed without anybody asking",
    needs: { hooks: ["connectWithClock"] },
    body: async (stage) => {
      const clock = new AdjustableClock();
      const locks = await stage.connectWithClock(clock, { ttlMs: 20_000 });
      const lock = await locks.acquire(stage.name);
      clock.jumpWall(3_600_000);
      await pause(2_500);
      assert.ok(lock.isHeld(), "nothing has renewed it meanwhile");
      await lock.release();
    },
  },
  {
    id: "loss/suspend-not-confirmed",
    title: "not confirmed by the monotonic deadline, it is lost",
    needs: { hooks: ["connectWithClock", "freezeServer", "thawServer"] },
    body: async (stage) => {
      const clock = new AdjustableClock();
      const locks = await stage.connectWithClock(clock);
      const lock = await locks.acquire(stage.name);
      const losing = aborted(lock.signal);
      const thaw = await stage.freeze();
      clock.jumpWall(60_000);
      assert.equal(lock.isHeld(), false);
      const reason = await within(stage.takeoverMs, "the signal", losing);
      assertLost(reason, expiry(stage, reason), stage.name);
      await thaw();
      await lock.release();
    },
  },
  {
    id: "loss/late-reply",
    title: "a reply that comes late makes the lease shorter, never longer",
    needs: { hooks: ["freezeServer", "thawServer"], traits: ["lease"] },
    body: async (stage) => {
      const ttlMs = 10_000;
      const locks = await stage.connect({ ttlMs });
      const thaw = await stage.freeze();
      const acquiring = locks.acquire(stage.name);
      await pause(400);
      await thaw();
      const lock = await within(stage.hangMs, "a slow answer", acquiring);
      // The engine's clients may have asked again meanwhile; the lease then counts from the last asking.
      assert.ok(lock.remainingMs() <= ttlMs * 0.99, "the lease was counted from the reply");
      await lock.release();
    },
  },
];

export const LOSS: readonly CaseDefinition[] = [...told, ...silent];
