/** L3, L4 and L5: every caller gets its answer, and nothing stays behind whatever was lost on the way. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { eventually, pause, rejection, rejectsWith, timed, within } from "../expect.ts";
import { EngineUnavailableError, LockTimeoutError } from "../../index.ts";

const WAIT_MS = 250;
const LONG_TTL_MS = 60_000;

export const SETTLING: readonly CaseDefinition[] = [
  {
    id: "L3/time-out",
    title: "after a time-out the caller has its answer in time and nothing stays in the engine",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      const tookMs = await timed(() => rejectsWith("LOCK_TIMEOUT", right.acquire(stage.name, { waitMs: WAIT_MS })));
      assert.ok(tookMs >= WAIT_MS - 5 && tookMs <= WAIT_MS + stage.lateMs, `answered after ${tookMs} ms`);
      await eventually(stage.takeoverMs, "the request is gone", async () => {
        return (await stage.queue(left)).pending.length === 0;
      });
      await holder.release();
      await stage.gone(left, stage.lateMs);
    },
  },
  {
    id: "L3/abort",
    title: "after an abort the caller has its answer at once and nothing stays in the engine",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      const controller = new AbortController();
      const waiting = right.acquire(stage.name, { signal: controller.signal });
      await stage.pending(left, 1);
      const reason = new Error("changed my mind");
      controller.abort(reason);
      assert.equal(await within(stage.lateMs, "aborting", rejection(waiting)), reason);
      await eventually(stage.takeoverMs, "the request is gone", async () => {
        return (await stage.queue(left)).pending.length === 0;
      });
      await holder.release();
      await stage.gone(left, stage.lateMs);
    },
  },
  {
    id: "L3/aborts-that-cross-grants",
    title: "an abort at the moment of the grant leaves the lock held by its caller or by nobody",
    incidents: [12],
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      for (let round = 0; round < 12; round++) {
        const holder = await left.acquire(stage.name);
        const controller = new AbortController();
        const waiting = right.acquire(stage.name, { signal: controller.signal });
        await stage.pending(left, 1);
        const releasing = holder.release();
        if (round % 3 > 0) await pause(round / 3);
        controller.abort(new Error("too late?"));
        const lock = await waiting.catch(() => null);
        await releasing;
        const next = left.acquire(stage.name);
        if (lock !== null) {
          assert.ok(lock.isHeld());
          await lock.release();
        }
        await (await within(stage.lateMs, "acquiring after an abort that crossed a grant", next)).release();
      }
    },
  },
  {
    id: "L3/try",
    title: "a try that fails leaves nothing behind",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      assert.equal(await right.tryAcquire(stage.name), null);
      await rejectsWith("LOCK_TIMEOUT", right.acquire(stage.name, { waitMs: 0 }));
      assert.equal(await right.request(stage.name, { ifAvailable: true }, (lock) => lock), null);
      const { held, pending } = await stage.queue(left);
      assert.equal(held.length, 1);
      assert.equal(pending.length, 0);
      await holder.release();
      await stage.gone(left, stage.lateMs);
    },
  },
  {
    id: "L3/frozen",
    title: "a request that timed out while the engine was frozen does not hold up others afterwards",
    incidents: [12],
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const thaw = await stage.freeze();
      const error = await within(
        WAIT_MS + stage.lateMs,
        "timing out while the engine is frozen",
        rejection(left.acquire(stage.name, { waitMs: WAIT_MS })),
      );
      assert.ok(error instanceof LockTimeoutError || error instanceof EngineUnavailableError, String(error));
      await thaw();
      const lock = await within(stage.takeoverMs + stage.lateMs, "the next request", right.acquire(stage.name));
      await lock.release();
      await stage.gone(right);
    },
  },
  {
    id: "L4/lost-reply-to-a-request",
    title: "a request whose reply is lost is found again, or gone; no orphan blocks the name",
    incidents: [23],
    needs: { hooks: ["loseReplies"] },
    body: async (stage) => {
      // With so long a lease an orphan would block the name until the case gives up.
      const ttlMs = LONG_TTL_MS;
      const [left, right] = await Promise.all([stage.connect({ ttlMs }), stage.connect({ ttlMs })]);
      const restore = await stage.loseReplies();
      const acquiring = left.acquire(stage.name).catch((error: unknown) => error);
      await pause(stage.ttlMs / 4);
      await restore();
      const outcome = await within(stage.hangMs, "a request whose reply was lost", acquiring);
      if (outcome instanceof Error) assert.ok(outcome instanceof EngineUnavailableError, String(outcome));
      else {
        const lock = outcome as Awaited<ReturnType<typeof left.acquire>>;
        assert.ok(lock.isHeld());
        const { held, pending } = await stage.queue(right);
        assert.deepEqual([held.length, pending.length], [1, 0], "the request is in the queue more than once");
        await lock.release();
      }
      const next = await within(stage.hangMs, "the next request", right.acquire(stage.name));
      await next.release();
      await stage.gone(right);
    },
  },
  {
    id: "L4/lost-reply-to-a-release",
    title: "a release whose reply is lost resolves, and the lock is free",
    incidents: [33],
    needs: { hooks: ["loseReplies"] },
    body: async (stage) => {
      const ttlMs = LONG_TTL_MS;
      const [left, right] = await Promise.all([stage.connect({ ttlMs }), stage.connect({ ttlMs })]);
      const lock = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name);
      await stage.pending(left, 1);
      const restore = await stage.loseReplies();
      const releasing = lock.release();
      await pause(stage.ttlMs / 4);
      await restore();
      await within(stage.hangMs, "a release whose reply was lost", releasing);
      const next = await within(stage.hangMs, "the next request", waiting);
      await next.renew();
      assert.ok(next.isHeld(), "the release, tried again, ended the next hold");
      assert.equal(await left.tryAcquire(stage.name), null);
      await next.release();
      await (await within(stage.hangMs, "another request", left.acquire(stage.name))).release();
    },
  },
  {
    id: "L4/cut-releases",
    title: "releases under way when all connections are cut are tried again: nothing blocks the name for its lease",
    incidents: [24],
    needs: { hooks: ["cutConnections"] },
    body: async (stage) => {
      const ttlMs = LONG_TTL_MS;
      const locks = await stage.connect({ ttlMs });
      for (let round = 0; round < 4; round++) {
        const lock = await locks.acquire(stage.name);
        const releasing = lock.release();
        if (round % 2 > 0) await pause(round);
        await stage.hook("cutConnections")();
        await within(stage.hangMs, "a release during a cut", releasing);
        await (await within(stage.hangMs, "the same client's next request", locks.acquire(stage.name))).release();
      }
      await stage.gone(locks);
    },
  },
  {
    id: "L4/cut-connections",
    title: "requests under way when all connections are cut are served or rejected; no orphan blocks the name",
    needs: { hooks: ["cutConnections"] },
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const settled = Array.from({ length: 6 }, (_, index) =>
        (index % 2 === 0 ? left : right)
          .request(stage.name, () => pause(stage.ttlMs / 20))
          .catch((error: unknown) => error),
      );
      await pause(stage.ttlMs / 15);
      await stage.hook("cutConnections")();
      await within(2 * stage.takeoverMs + stage.hangMs, "requests during a cut", Promise.all(settled));
      const lock = await within(stage.takeoverMs, "the next request", right.acquire(stage.name));
      await lock.release();
      await stage.gone(right);
    },
  },
  {
    id: "L5/frozen-wait",
    title: "while the engine is frozen, time-outs and aborts settle in time; so does close()",
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const locks = await stage.connect();
      const holder = await locks.acquire(stage.name);
      const controller = new AbortController();
      const pending = rejection(locks.acquire(stage.name, { signal: controller.signal }));
      await stage.pending(locks, 1);
      const thaw = await stage.freeze();
      const fresh = rejection(locks.acquire(`${stage.name} fresh`, { signal: controller.signal }));
      const timingOut = rejection(locks.acquire(stage.name, { waitMs: WAIT_MS }));
      const answer = await within(WAIT_MS + stage.lateMs, "a time-out while frozen", timingOut);
      assert.ok(answer instanceof LockTimeoutError || answer instanceof EngineUnavailableError, String(answer));
      const reason = new Error("enough");
      controller.abort(reason);
      const answers = await within(stage.lateMs, "aborts while frozen", Promise.all([pending, fresh]));
      assert.ok(
        answers.every((each) => each === reason || each instanceof EngineUnavailableError),
        String(answers),
      );
      await within(stage.takeoverMs + stage.hangMs, "close() while frozen", locks.close());
      assert.equal(holder.isHeld(), false);
      await thaw();
    },
  },
  {
    id: "L5/lapsed-waiter",
    title: "a waiter whose place has ended while it was stopped learns it long before its turn, and queues again",
    incidents: [32],
    needs: { peers: "sharing" },
    body: async (stage) => {
      const locks = await stage.connect({ ttlMs: stage.steadyTtlMs });
      const peer = await stage.peer();
      const holder = await locks.acquire(stage.name);
      const acquiring = peer.acquire("lock", stage.name);
      await stage.pending(locks, 1);
      peer.pause();
      await eventually(stage.takeoverMs, "its place ends", async () => {
        return (await stage.queue(locks)).pending.length === 0;
      });
      peer.resume();
      await stage.pending(locks, 1);
      assert.ok(holder.isHeld());
      await holder.release();
      const look = await within(stage.takeoverMs + stage.hangMs, "the waiter that was stopped", acquiring);
      assert.ok(look.held && look.token > holder.token);
      await peer.release("lock");
    },
  },
  {
    id: "L5/thawed",
    title: "a request made while the engine is frozen settles after the thaw, by grant or by a definite error",
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const locks = await stage.connect();
      const thaw = await stage.freeze();
      const acquiring = locks.acquire(stage.name).then(
        async (lock) => {
          assert.ok(lock.isHeld());
          await lock.release();
        },
        (error: unknown) => assert.ok(error instanceof EngineUnavailableError, String(error)),
      );
      await pause(stage.ttlMs / 3);
      await thaw();
      await within(stage.takeoverMs + stage.hangMs, "a request made while frozen", acquiring);
      await stage.gone(locks);
    },
  },
  {
    id: "L5/contention",
    title: "with many requests from several connections, some aborted and some timing out, every one settles",
    needs: {},
    body: async (stage) => {
      const managers = await Promise.all([stage.connect(), stage.connect(), stage.connect()]);
      const settled = managers.flatMap((locks, index) =>
        Array.from({ length: 8 }, (_, turn) => {
          const controller = new AbortController();
          const options = turn % 3 === 1 ? { waitMs: 5 * turn } : { signal: controller.signal };
          const request = locks
            .request(stage.name, options, () => pause(2))
            .then(
              () => "served",
              () => "refused",
            );
          if (turn % 3 === 2) void pause(3 * turn + index).then(() => controller.abort());
          return request;
        }),
      );
      const outcomes = await within(2 * stage.hangMs, "all requests", Promise.all(settled));
      assert.ok(outcomes.filter((each) => each === "served").length >= 9, "those that wait are served");
      const [locks] = managers;
      assert.ok(locks);
      await stage.gone(locks);
    },
  },
];
