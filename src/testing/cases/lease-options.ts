/** ttlMs, minHoldMs, maxHoldMs and graceMs. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { aborted, eventually, neverThrows, nowMs, pause, rejectsWith, stillPending, within } from "../expect.ts";
import { LockLostError, type LeaseOptions } from "../../index.ts";
import type { Stage } from "../stage.ts";
import { refusesMinHold } from "./refusals.ts";

const DAY_MS = 86_400_000;

/** Each of these makes every call refuse, before anything is asked of the engine. */
async function refused(stage: Stage, wrong: readonly LeaseOptions[]): Promise<void> {
  const locks = await stage.connect();
  for (const options of wrong) {
    await rejectsWith(
      "CONFIG",
      neverThrows(() => locks.acquire(stage.name, options)),
    );
    await rejectsWith(
      "CONFIG",
      neverThrows(() => locks.tryAcquire(stage.name, options)),
    );
    await rejectsWith(
      "CONFIG",
      neverThrows(() => locks.request(stage.name, options, () => {})),
    );
    await rejectsWith(
      "CONFIG",
      neverThrows(() => stage.connect(options)),
    );
  }
  await stage.gone(locks);
}

const notMilliseconds = [Number.NaN, -1, "1000", null, {}] as unknown as number[];

const ttlAndGrace: CaseDefinition[] = [
  {
    id: "ttlMs/remaining",
    title: "a fresh lock has its lease before it, less a margin",
    needs: { traits: ["lease"] },
    otherwise: {
      title: "on a session engine ttlMs sets nothing; remainingMs() tells what is left of the session",
      body: async (stage) => {
        const locks = await stage.connect();
        const long = await locks.acquire(`${stage.name} long`, { ttlMs: DAY_MS });
        const short = await locks.acquire(`${stage.name} short`, { ttlMs: 100 });
        assert.ok(long.remainingMs() > 0 && long.remainingMs() < DAY_MS / 2);
        assert.ok(Math.abs(long.remainingMs() - short.remainingMs()) < stage.lateMs);
        const { held } = await stage.queue(locks, `${stage.name} long`);
        assert.equal(held[0]?.remainingMs, null);
        await Promise.all([long.release(), short.release()]);
      },
    },
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name, { ttlMs: 10_000 });
      const left = lock.remainingMs();
      assert.ok(left <= 10_000 - 100, `${left} ms left: nothing is kept for clocks that differ`);
      assert.ok(left > 10_000 - 102 - stage.lateMs, `only ${left} ms left`);
      await lock.release();
      const day = await locks.acquire(stage.name, { ttlMs: DAY_MS });
      assert.ok(day.remainingMs() > DAY_MS * 0.98);
      await day.release();
      const short = await locks.tryAcquire(stage.name, { ttlMs: 100 });
      assert.ok((short?.remainingMs() ?? 0) < 100);
      await short?.release();
    },
  },
  {
    id: "ttlMs/default",
    title: "the connection's default counts, and a call's own option before it",
    needs: { traits: ["lease"] },
    body: async (stage) => {
      const locks = await stage.connect({ ttlMs: 7_000 });
      const lock = await locks.acquire(stage.name);
      assert.ok(lock.remainingMs() > 4_000 && lock.remainingMs() < 7_000);
      await lock.release();
      await locks.request(stage.name, { ttlMs: 20_000 }, async (own) => {
        assert.ok(own.remainingMs() > 10_000 && own.remainingMs() < 20_000);
      });
    },
  },
  {
    id: "ttlMs/renewed",
    title: "a lock is renewed for as long as it is held",
    needs: {},
    body: async (stage) => {
      const ttlMs = stage.steadyTtlMs;
      const [locks, other] = await Promise.all([stage.connect({ ttlMs }), stage.connect()]);
      const lock = await locks.acquire(stage.name);
      const { token } = lock;
      await pause(ttlMs * 1.7);
      assert.ok(lock.isHeld(), `lost: ${String(lock.signal.reason)}, ${lock.remainingMs()} ms left`);
      assert.equal(lock.signal.aborted, false);
      assert.equal(lock.token, token);
      assert.equal(await other.tryAcquire(stage.name), null);
      await lock.release();
    },
  },
  {
    id: "ttlMs/waiting",
    title: "a request is kept alive for as long as it waits, and keeps its place",
    needs: {},
    body: async (stage) => {
      const ttlMs = stage.steadyTtlMs;
      const [left, right] = await Promise.all([stage.connect({ ttlMs }), stage.connect({ ttlMs })]);
      const holder = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name);
      await stage.pending(left, 1);
      const since = (await stage.queue(left)).pending[0]?.sinceMs;
      await stillPending(ttlMs * 1.7, "waiting", waiting);
      assert.equal((await stage.queue(left)).pending[0]?.sinceMs, since, "it was queued anew");
      await holder.release();
      await (await within(stage.hangMs, "a long wait", waiting)).release();
    },
  },
  {
    id: "ttlMs/checked",
    title: "anything but 100 to 86,400,000 is a ConfigError",
    needs: {},
    body: (stage) =>
      refused(
        stage,
        [99, DAY_MS + 1, Infinity, ...notMilliseconds.slice(0, 3)].map((ttlMs) => ({ ttlMs })),
      ),
  },
  {
    id: "graceMs/before-the-deadline",
    title: "the signal aborts graceMs before the deadline, while the lock is still held",
    needs: { hooks: ["freezeServer", "thawServer"], traits: ["lease"] },
    body: async (stage) => {
      const ttlMs = stage.steadyTtlMs;
      const graceMs = ttlMs / 2;
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name, { ttlMs, graceMs });
      const aborting = aborted(lock.signal).then((reason) => ({
        reason,
        left: lock.remainingMs(),
        held: lock.isHeld(),
      }));
      const thaw = await stage.freeze();
      const { reason, left, held } = await within(ttlMs + stage.lateMs, "the signal", aborting);
      await thaw();
      assert.ok(reason instanceof LockLostError && reason.reason === "expired", String(reason));
      assert.ok(held && left > 0, "no time was left to stop");
      assert.ok(left <= graceMs + 50, `it aborted ${left} ms before the deadline`);
      await lock.release();
    },
  },
  {
    id: "graceMs/before-the-longest-hold",
    title: "the signal aborts graceMs before maxHoldMs, while the lock is still held",
    needs: {},
    body: async (stage) => {
      const ttlMs = stage.steadyTtlMs;
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name, { ttlMs, graceMs: ttlMs / 2, maxHoldMs: ttlMs * 0.75 });
      const reason = await within(ttlMs + stage.lateMs, "the signal", aborted(lock.signal));
      assert.ok(reason instanceof LockLostError && reason.reason === "max-hold", String(reason));
      const left = lock.remainingMs();
      assert.ok(lock.isHeld() && left > 0 && left <= ttlMs / 2 + 50, `${left} ms were left to stop`);
      await lock.release();
    },
  },
  {
    id: "graceMs/checked",
    title: "anything but 0 to half of ttlMs is a ConfigError",
    needs: {},
    body: (stage) =>
      refused(stage, [
        ...notMilliseconds.slice(0, 3).map((graceMs) => ({ graceMs })),
        { ttlMs: 1_000, graceMs: 501 },
        { ttlMs: 1_000, graceMs: Infinity },
      ]),
  },
];

const minHold: CaseDefinition[] = [
  {
    id: "minHoldMs/released-early",
    title: "a release before that time leaves the place taken, ownerless, until it ends; then the next one has it",
    incidents: [64],
    needs: { traits: ["minHold"] },
    otherwise: refusesMinHold,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const minHoldMs = 900;
      const startMs = nowMs();
      const lock = await left.acquire(stage.name, { minHoldMs });
      await lock.release();
      assert.equal(lock.isHeld(), false);
      assert.equal(await right.tryAcquire(stage.name), null);
      assert.equal((await stage.queue(right)).held.length, 1, "the place is listed as held");
      const next = await within(minHoldMs + stage.lateMs, "the next one", right.acquire(stage.name));
      assert.ok(nowMs() - startMs >= minHoldMs * 0.98, "the minimum hold was cut short");
      assert.ok(next.token > lock.token);
      await next.release();
      await stage.gone(left, stage.lateMs);
    },
  },
  {
    id: "minHoldMs/held-longer",
    title: "it costs nothing when the lock is held for longer",
    needs: { traits: ["minHold"] },
    otherwise: refusesMinHold,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await left.acquire(stage.name, { minHoldMs: 100 });
      await pause(150);
      await lock.release();
      const next = await right.tryAcquire(stage.name);
      assert.ok(next);
      await next.release();
    },
  },
  {
    id: "minHoldMs/exit",
    title: "a connection that closes leaves the place taken as well",
    incidents: [64],
    needs: { traits: ["minHold"] },
    otherwise: refusesMinHold,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const minHoldMs = 900;
      const startMs = nowMs();
      await left.acquire(stage.name, { minHoldMs });
      await left.close();
      const next = await within(minHoldMs + stage.lateMs, "the next one", right.acquire(stage.name));
      assert.ok(nowMs() - startMs >= minHoldMs * 0.98, "the minimum hold was cut short");
      await next.release();
    },
  },
  {
    id: "minHoldMs/scoped",
    title: "the scoped form resolves at its release; a failed try and a time-out leave no minimum hold",
    needs: { traits: ["minHold"] },
    otherwise: refusesMinHold,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      assert.equal(await right.tryAcquire(stage.name, { minHoldMs: DAY_MS }), null);
      await rejectsWith("LOCK_TIMEOUT", right.acquire(stage.name, { minHoldMs: DAY_MS, waitMs: 50 }));
      await holder.release();
      await within(
        stage.lateMs,
        "the scoped form",
        left.request(stage.name, { minHoldMs: 600 }, () => {}),
      );
      const next = await within(600 + stage.lateMs, "the next one", right.acquire(stage.name));
      await next.release();
    },
  },
  {
    id: "minHoldMs/undelivered",
    title: "a grant that crosses an abort is withdrawn without its minimum hold",
    needs: { traits: ["minHold"] },
    otherwise: refusesMinHold,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      for (let round = 0; round < 8; round++) {
        const holder = await left.acquire(stage.name);
        const controller = new AbortController();
        const waiting = right.acquire(stage.name, { minHoldMs: DAY_MS, signal: controller.signal });
        await stage.pending(left, 1);
        const releasing = holder.release();
        if (round % 2 > 0) await pause(round / 4);
        controller.abort();
        const lock = await waiting.catch(() => null);
        await releasing;
        if (lock !== null) {
          await lock.release();
          assert.ok(await left.evict(stage.name, lock.token), "a minimum hold can be evicted by hand");
        }
        await stage.gone(left, stage.takeoverMs);
      }
    },
  },
  {
    id: "minHoldMs/checked",
    title: "anything but 0 to 86,400,000 is a ConfigError",
    needs: {},
    body: (stage) =>
      refused(
        stage,
        [DAY_MS + 1, Infinity, ...notMilliseconds.slice(0, 3)].map((minHoldMs) => ({ minHoldMs })),
      ),
  },
];

const maxHold: CaseDefinition[] = [
  {
    id: "maxHoldMs/lost",
    title: 'after that time the lock is lost, reason "max-hold", and the next one has it at once',
    incidents: [14],
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const lock = await left.acquire(stage.name, { ttlMs: 30_000, maxHoldMs: 400 });
      const waiting = right.acquire(stage.name);
      assert.ok(lock.remainingMs() <= 400);
      const reason = await within(400 + stage.lateMs, "the signal", aborted(lock.signal));
      assert.ok(reason instanceof LockLostError && reason.reason === "max-hold", String(reason));
      assert.equal(lock.isHeld(), false);
      await (await within(stage.lateMs, "the next one", waiting)).release();
      await rejectsWith("LOCK_LOST", lock.renew());
      await lock.release();
    },
  },
  {
    id: "maxHoldMs/not-reached",
    title: "a lock that is released before does not notice it",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name, { maxHoldMs: 300 });
      await lock.release();
      const next = await locks.acquire(stage.name);
      await pause(350);
      assert.equal(lock.signal.aborted, false);
      assert.ok(next.isHeld());
      await next.release();
    },
  },
  {
    id: "maxHoldMs/scoped",
    title: "the scoped form rejects with LockLostError and nothing is left",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const error = await rejectsWith(
        "LOCK_LOST",
        within(
          300 + stage.lateMs,
          "the scoped form",
          locks.request(stage.name, { maxHoldMs: 300 }, async (lock) => {
            await aborted(lock.signal);
            return "too late";
          }),
        ),
      );
      assert.ok(error instanceof LockLostError && error.reason === "max-hold");
      await eventually(stage.lateMs, "the name is free", async () => {
        const lock = await locks.tryAcquire(stage.name);
        await lock?.release();
        return lock !== null;
      });
    },
  },
  {
    id: "maxHoldMs/checked",
    title: "anything but a positive number of milliseconds is a ConfigError",
    needs: {},
    body: (stage) =>
      refused(
        stage,
        [0, ...notMilliseconds.slice(0, 3)].map((maxHoldMs) => ({ maxHoldMs })),
      ),
  },
];

export const LEASE_OPTIONS: readonly CaseDefinition[] = [...ttlAndGrace, ...minHold, ...maxHold];
