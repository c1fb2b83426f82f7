/** waitMs, signal, mode, ifAvailable and steal: they mean what they mean in the Web Locks API. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import type { CaseDefinition } from "../case.ts";
import { aborted, neverThrows, pause, rejection, rejectsWith, stillPending, timed, within } from "../expect.ts";
import { LockStolenError, LockTimeoutError, type AcquireOptions, type RequestOptions } from "../../index.ts";
import { refusesShared, refusesSteal } from "./refusals.ts";

const waitAndSignal: CaseDefinition[] = [
  {
    id: "waitMs/zero",
    title: "0 is one attempt: granted when free, LockTimeoutError when not",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name, { waitMs: 0 });
      const error = await within(stage.lateMs, "one attempt", rejection(locks.acquire(stage.name, { waitMs: 0 })));
      assert.ok(error instanceof LockTimeoutError);
      assert.equal(error.code, "LOCK_TIMEOUT");
      assert.equal(error.lockName, stage.name);
      await rejectsWith(
        "LOCK_TIMEOUT",
        locks.request(stage.name, { waitMs: 0 }, () => {}),
      );
      await lock.release();
    },
  },
  {
    id: "waitMs/in-time",
    title: "a lock that comes free in time is granted",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name, { waitMs: stage.hangMs });
      await pause(50);
      await holder.release();
      await (await waiting).release();
    },
  },
  {
    id: "waitMs/over",
    title: "afterwards it is a LockTimeoutError, not sooner; the scoped form never calls back",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const holder = await locks.acquire(stage.name);
      let called = false;
      const tookMs = await timed(() =>
        rejectsWith(
          "LOCK_TIMEOUT",
          locks.request(stage.name, { waitMs: 200 }, () => {
            called = true;
          }),
        ),
      );
      assert.ok(tookMs >= 195 && tookMs < 200 + stage.lateMs, `it gave up after ${tookMs} ms`);
      await holder.release();
      await pause(50);
      assert.equal(called, false);
    },
  },
  {
    id: "waitMs/absent",
    title: "without it a request waits, also for several leases",
    needs: {},
    body: async (stage) => {
      const ttlMs = stage.steadyTtlMs;
      const [left, right] = await Promise.all([stage.connect({ ttlMs }), stage.connect({ ttlMs })]);
      const holder = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name);
      await stillPending(ttlMs * 1.4, "waiting for ever", waiting);
      await holder.release();
      await (await within(stage.hangMs, "the waiter", waiting)).release();
    },
  },
  {
    id: "waitMs/checked",
    title: "anything but milliseconds is a ConfigError; with ifAvailable or steal it is refused",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      for (const waitMs of [-1, Number.NaN, "5"] as unknown as number[]) {
        await rejectsWith(
          "CONFIG",
          neverThrows(() => locks.acquire(stage.name, { waitMs })),
        );
        await rejectsWith(
          "CONFIG",
          neverThrows(() => locks.request(stage.name, { waitMs }, () => {})),
        );
      }
      for (const other of [{ ifAvailable: true }, { steal: true }]) {
        const call = neverThrows(() => locks.request(stage.name, { waitMs: 5, ...other }, () => {}));
        await rejectsWith("NOT_SUPPORTED", call);
      }
    },
  },
  {
    id: "signal/reason",
    title: "an abort while pending rejects with the signal's reason, whatever that is",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      for (const reason of [new Error("own"), "a string", 42]) {
        const controller = new AbortController();
        const acquiring = rejection(right.acquire(stage.name, { signal: controller.signal }));
        const requesting = rejection(right.request(stage.name, { signal: controller.signal }, () => {}));
        await pause(10);
        controller.abort(reason);
        assert.equal(await acquiring, reason);
        assert.equal(await requesting, reason);
      }
      const controller = new AbortController();
      const acquiring = rejection(right.acquire(stage.name, { signal: controller.signal }));
      controller.abort();
      assert.equal(await acquiring, controller.signal.reason);
      assert.equal(((await acquiring) as Error).name, "AbortError");
      await holder.release();
    },
  },
  {
    id: "signal/already-aborted",
    title: "an aborted signal rejects at once, and nothing is asked of the engine",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const reason = new Error("from the start");
      const signal = AbortSignal.abort(reason);
      assert.equal(await rejection(neverThrows(() => locks.acquire(stage.name, { signal }))), reason);
      let called = false;
      const requesting = neverThrows(() =>
        locks.request(stage.name, { signal }, () => {
          called = true;
        }),
      );
      assert.equal(await rejection(requesting), reason);
      assert.equal(called, false);
      const { held, pending } = await stage.queue(locks);
      assert.equal(held.length + pending.length, 0);
    },
  },
  {
    id: "signal/after-the-grant",
    title: "an abort after the grant is ignored",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const controller = new AbortController();
      const lock = await locks.acquire(stage.name, { signal: controller.signal });
      controller.abort(new Error("too late"));
      await pause(30);
      assert.ok(lock.isHeld());
      assert.equal(lock.signal.aborted, false);
      assert.equal(await other.tryAcquire(stage.name), null);
      await lock.release();
      const second = new AbortController();
      const result = await locks.request(stage.name, { signal: second.signal }, async (held) => {
        second.abort();
        await pause(30);
        return held.isHeld();
      });
      assert.equal(result, true);
    },
  },
  {
    id: "signal/place",
    title: "an abort takes the request out of the queue: those behind it move up",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      const controller = new AbortController();
      const first = rejection(left.acquire(stage.name, { signal: controller.signal }));
      await stage.pending(left, 1);
      const second = right.acquire(stage.name);
      await stage.pending(left, 2);
      controller.abort();
      await first;
      await holder.release();
      await (await within(stage.lateMs, "the request behind an aborted one", second)).release();
    },
  },
  {
    id: "signal/listeners",
    title: "one signal for many requests: no listener stays on it",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const { signal } = new AbortController();
      for (let turn = 0; turn < 3; turn++) {
        await locks.request(stage.name, { signal }, () => {});
        const lock = await locks.acquire(stage.name, { signal, waitMs: 1_000 });
        await rejectsWith("LOCK_TIMEOUT", locks.acquire(stage.name, { signal, waitMs: 20 }));
        await lock.release();
      }
      assert.equal(getEventListeners(signal, "abort").length, 0);
    },
  },
];

const modes: CaseDefinition[] = [
  {
    id: "mode/exclusive",
    title: "exclusive is the default: one holder",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name);
      assert.equal(lock.mode, "exclusive");
      assert.equal(await locks.tryAcquire(stage.name), null);
      assert.equal(await locks.tryAcquire(stage.name, { mode: "exclusive" }), null);
      await lock.release();
      await locks.request(stage.name, { mode: "exclusive" }, (own) => assert.equal(own.mode, "exclusive"));
    },
  },
  {
    id: "mode/shared",
    title: "shared holders are together; an exclusive one waits for the last of them",
    needs: { traits: ["shared"] },
    otherwise: refusesShared,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const first = await left.acquire(stage.name, { mode: "shared" });
      const second = await within(stage.lateMs, "a second reader", right.acquire(stage.name, { mode: "shared" }));
      assert.deepEqual([first.mode, second.mode], ["shared", "shared"]);
      const writing = left.acquire(stage.name);
      await stage.pending(left, 1);
      await first.release();
      await stillPending(100, "a writer beside a reader", writing);
      await second.release();
      const writer = await within(stage.lateMs, "the writer", writing);
      assert.equal(await right.tryAcquire(stage.name, { mode: "shared" }), null);
      await writer.release();
    },
  },
  {
    id: "mode/readers-after-a-writer",
    title: "the readers that waited behind a writer come in together",
    needs: { traits: ["shared"] },
    otherwise: refusesShared,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const writer = await left.acquire(stage.name);
      const reading = [left, right, right].map((locks) => locks.acquire(stage.name, { mode: "shared" }));
      await stage.pending(left, 3);
      await writer.release();
      const readers = await within(stage.hangMs, "all readers", Promise.all(reading));
      assert.ok(readers.every((each) => each.isHeld()));
      await Promise.all(readers.map((each) => each.release()));
    },
  },
  {
    id: "mode/writer-is-not-starved",
    title: "a reader that comes after a waiting writer waits behind it",
    needs: { traits: ["shared", "fair"] },
    otherwise: refusesShared,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const reader = await left.acquire(stage.name, { mode: "shared" });
      const writing = right.acquire(stage.name);
      await stage.pending(left, 1);
      const late = left.acquire(stage.name, { mode: "shared" });
      await stage.pending(left, 2);
      await stillPending(50, "a reader behind a writer", late);
      await reader.release();
      const writer = await within(stage.lateMs, "the writer", writing);
      await stillPending(50, "a reader beside a writer", late);
      await writer.release();
      await (await within(stage.lateMs, "the late reader", late)).release();
    },
  },
  {
    id: "mode/wrong",
    title: "another mode is a TypeError",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const options = { mode: "upgrade" } as unknown as AcquireOptions;
      assert.ok((await rejection(neverThrows(() => locks.acquire(stage.name, options)))) instanceof TypeError);
      assert.ok((await rejection(neverThrows(() => locks.tryAcquire(stage.name, options)))) instanceof TypeError);
      const call = neverThrows(() => locks.request(stage.name, options, () => {}));
      assert.ok((await rejection(call)) instanceof TypeError);
    },
  },
];

const takeOrLeave: CaseDefinition[] = [
  {
    id: "ifAvailable/free",
    title: "calls back with the lock when it is free",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const held = await locks.request(stage.name, { ifAvailable: true }, (lock) => lock?.isHeld());
      assert.equal(held, true);
      const lock = await locks.tryAcquire(stage.name);
      assert.ok(lock);
      assert.ok(lock.isHeld());
      await lock.release();
    },
  },
  {
    id: "ifAvailable/busy",
    title: "calls back with null at once when it is held, and resolves to what the callback returns",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      const asking = right.request(stage.name, { ifAvailable: true }, (lock) => (lock === null ? "busy" : "free"));
      assert.equal(await within(stage.lateMs, "ifAvailable", asking), "busy");
      assert.equal(await right.tryAcquire(stage.name), null);
      await holder.release();
    },
  },
  {
    id: "ifAvailable/only-pending-ahead",
    title: "null also when only pending requests block",
    needs: { traits: ["shared", "fair"] },
    otherwise: refusesShared,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const reader = await left.acquire(stage.name, { mode: "shared" });
      const writing = right.acquire(stage.name);
      await stage.pending(left, 1);
      const options: RequestOptions = { mode: "shared", ifAvailable: true };
      assert.equal(await left.request(stage.name, options, (lock) => lock), null);
      await reader.release();
      await (await writing).release();
    },
  },
  {
    id: "ifAvailable/engine-failure",
    title: "an engine that cannot be asked is an error, not null",
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const locks = await stage.connect();
      const thaw = await stage.freeze();
      const asking = locks.request(stage.name, { ifAvailable: true }, (lock) => (lock === null ? "null" : "lock"));
      const outcome = asking.catch((error: unknown) => error);
      await Promise.race([outcome, pause(stage.ttlMs * 2)]);
      await thaw();
      // An engine may be patient enough to get an answer after the thaw; "busy" it must not call it.
      assert.notEqual(await within(stage.hangMs, "ifAvailable on a frozen engine", outcome), "null");
    },
  },
  {
    id: "steal/all-holders",
    title: "ends all holders, shared ones too: their signals abort with LockStolenError",
    needs: { traits: ["steal", "shared"] },
    otherwise: refusesSteal,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const victims = [
        await left.acquire(stage.name, { mode: "shared" }),
        await right.acquire(stage.name, { mode: "shared" }),
      ];
      const reasons = victims.map((each) => aborted(each.signal));
      await left.request(stage.name, { steal: true }, async (thief) => {
        assert.ok(thief.isHeld());
        assert.ok(victims.every((each) => thief.token > each.token));
        for (const reason of await within(stage.takeoverMs, "telling the victims", Promise.all(reasons))) {
          assert.ok(reason instanceof LockStolenError);
          assert.deepEqual([reason.code, reason.reason, reason.lockName], ["LOCK_STOLEN", "stolen", stage.name]);
        }
        assert.ok(victims.every((each) => !each.isHeld()));
      });
      await Promise.all(victims.map((each) => each.release()));
    },
  },
  {
    id: "steal/front-of-the-queue",
    title: "goes to the front; the requests that wait stay, in their order",
    needs: { traits: ["steal"] },
    otherwise: refusesSteal,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const order: string[] = [];
      const victim = await left.acquire(stage.name);
      const first = right.request(stage.name, () => void order.push("first"));
      await stage.pending(left, 1);
      const second = left.request(stage.name, () => void order.push("second"));
      await stage.pending(left, 2);
      await right.request(stage.name, { steal: true }, async () => {
        order.push("thief");
        await pause(30);
      });
      await within(stage.hangMs, "those that waited", Promise.all([first, second]));
      assert.deepEqual(order, ["thief", "first", "second"]);
      await victim.release();
    },
  },
  {
    id: "steal/victim",
    title: "a victim's request rejects with LockStolenError, once its callback has settled",
    needs: { traits: ["steal"] },
    otherwise: refusesSteal,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      let settled = false;
      let started: (() => void) | undefined;
      const running = new Promise<void>((resolve) => (started = resolve));
      const victim = left.request(stage.name, async (lock) => {
        started?.();
        await aborted(lock.signal);
        await pause(50);
        settled = true;
        return "ignored";
      });
      const outcome = rejection(victim).then((error) => ({ error, settled }));
      await running;
      await right.request(stage.name, { steal: true }, () => {});
      const { error, settled: wasSettled } = await within(stage.takeoverMs, "the victim", outcome);
      assert.ok(error instanceof LockStolenError);
      assert.equal(wasSettled, true, "it rejected before its callback had settled");
    },
  },
  {
    id: "steal/free",
    title: "takes a free lock like any other request",
    needs: { traits: ["steal"] },
    otherwise: refusesSteal,
    body: async (stage) => {
      const locks = await stage.connect();
      assert.equal(await locks.request(stage.name, { steal: true }, (lock) => lock?.isHeld()), true);
      await stage.gone(locks, stage.lateMs);
    },
  },
];

export const REQUEST_OPTIONS: readonly CaseDefinition[] = [...waitAndSignal, ...modes, ...takeOrLeave];
