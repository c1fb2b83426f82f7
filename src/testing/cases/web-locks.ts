/** The scoped form, as a user of the Web Locks API knows it. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { neverThrows, pause, rejection, rejectsWith, stillPending, within } from "../expect.ts";
import { NotSupportedError, type HeldLock, type LockManager, type RequestOptions } from "../../index.ts";

/** Calls that a program without types could make. */
interface Untyped {
  request(...parameters: unknown[]): Promise<unknown>;
}

const scoped: CaseDefinition[] = [
  {
    id: "request/result",
    title: "resolves to what the callback returns, awaited",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const plain: number = await locks.request(stage.name, () => 7);
      const awaited: string = await locks.request(stage.name, async () => "eight");
      const nothing = await locks.request(stage.name, () => {});
      assert.deepEqual([plain, awaited, nothing], [7, "eight", undefined]);
    },
  },
  {
    id: "request/held-inside",
    title: "the callback has the lock: name, mode, token, signal; afterwards it is released",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      let kept: HeldLock | undefined;
      await locks.request(stage.name, async (lock) => {
        kept = lock;
        assert.equal(lock.name, stage.name);
        assert.equal(lock.mode, "exclusive");
        assert.equal(typeof lock.token, "bigint");
        assert.ok(lock.token > 0n);
        assert.ok(lock.signal instanceof AbortSignal);
        assert.ok(lock.isHeld());
        assert.equal(await other.tryAcquire(stage.name), null);
      });
      assert.equal(kept?.isHeld(), false);
      assert.equal(kept?.signal.aborted, false);
    },
  },
  {
    id: "request/callback-error",
    title: "an error of the callback is passed on as it is, and the lock is released",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const own = new Error("own");
      const failing = locks.request(stage.name, async () => {
        throw own;
      });
      assert.equal(await rejection(failing), own);
      const thrown = neverThrows(() =>
        locks.request(stage.name, () => {
          throw own;
        }),
      );
      assert.equal(await rejection(thrown), own);
      assert.equal("cause" in own, false);
      const lock = await other.tryAcquire(stage.name);
      assert.ok(lock);
      await lock.release();
    },
  },
  {
    id: "request/settles-after-release",
    title: "the promise settles after the release: the next try finds the name free",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      for (let turn = 0; turn < 10; turn++) {
        await left.request(stage.name, () => {});
        const lock = await right.tryAcquire(stage.name);
        assert.ok(lock, "it settled while the lock was still held");
        await lock.release();
      }
    },
  },
  {
    id: "request/fifo",
    title: "requests are granted in the order in which they came, over several connections",
    needs: { traits: ["fair"] },
    otherwise: {
      title: "order is not promised, but everybody is served",
      body: async (stage) => {
        const managers = await Promise.all([stage.connect(), stage.connect()]);
        let served = 0;
        const requests = managers.flatMap((locks) =>
          Array.from({ length: 4 }, () => locks.request(stage.name, () => void served++)),
        );
        await within(2 * stage.hangMs, "everybody", Promise.all(requests));
        assert.equal(served, 8);
      },
    },
    body: async (stage) => {
      const managers = await Promise.all([stage.connect(), stage.connect(), stage.connect()]);
      const [first] = managers;
      assert.ok(first);
      const holder = await first.acquire(stage.name);
      const order: number[] = [];
      const requests: Promise<unknown>[] = [];
      for (let each = 0; each < 7; each++) {
        const locks: LockManager = managers[each % 3] ?? first;
        requests.push(locks.request(stage.name, () => void order.push(each)));
        await stage.pending(first, each + 1);
      }
      await holder.release();
      await within(stage.hangMs, "all requests", Promise.all(requests));
      assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6]);
    },
  },
  {
    id: "request/no-barging",
    title: "a newcomer does not overtake a waiting request at the moment of a release",
    needs: { traits: ["fair"] },
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      for (let turn = 0; turn < 5; turn++) {
        const holder = await left.acquire(stage.name);
        const waiting = right.acquire(stage.name);
        await stage.pending(left, 1);
        const releasing = holder.release();
        const newcomer = left.tryAcquire(stage.name);
        await releasing;
        assert.equal(await newcomer, null, "a newcomer overtook");
        assert.equal(await left.tryAcquire(stage.name), null, "a newcomer overtook");
        await (await waiting).release();
      }
    },
  },
  {
    id: "request/names-apart",
    title: "different names do not wait for each other",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const first = await locks.acquire(`${stage.name} one`);
      const second = await within(stage.lateMs, "another name", locks.acquire(`${stage.name} two`));
      await Promise.all([first.release(), second.release()]);
    },
  },
  {
    id: "request/nested",
    title: "a nested request for the same name is legal: not awaited it is served later",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      let inner: Promise<string> | undefined;
      await locks.request(stage.name, async () => {
        inner = locks.request(stage.name, () => "inner");
        await stillPending(50, "a nested request", inner);
        assert.equal(await locks.request(stage.name, { ifAvailable: true }, (lock) => lock), null);
        assert.equal(await locks.request(`${stage.name} other`, () => "other"), "other");
      });
      assert.ok(inner);
      assert.equal(await within(stage.hangMs, "the nested request", inner), "inner");
    },
  },
  {
    id: "request/nested-warning",
    title: "a nested request that is awaited hangs, and the process is warned once",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const warnings: string[] = [];
      const onWarning = (warning: Error): void => {
        if (warning.message.includes(JSON.stringify(stage.name))) warnings.push(warning.message);
      };
      process.on("warning", onWarning);
      const controller = new AbortController();
      const { signal } = controller;
      const outer = locks.request(stage.name, () => locks.request(stage.name, { signal }, () => {})).catch(() => {});
      await pause(1_600);
      controller.abort();
      await within(stage.hangMs, "the outer request", outer);
      process.off("warning", onWarning);
      assert.equal(warnings.length, 1);
    },
  },
];

const checks: CaseDefinition[] = [
  {
    id: "request/no-callback",
    title: "without a callback it is a TypeError, as a rejection",
    needs: {},
    body: async (stage) => {
      const locks = (await stage.connect()) as unknown as Untyped;
      const { name } = stage;
      for (const call of [[name], [name, {}], [name, {}, "no"], [name, undefined, null], []]) {
        const error = await rejection(neverThrows(() => locks.request(...call)));
        assert.ok(error instanceof TypeError, `request(${call.length} arguments): ${String(error)}`);
      }
    },
  },
  {
    id: "request/null-signal",
    title: "signal: null, or anything that is no signal, is a TypeError",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      for (const signal of [null, {}, "signal"]) {
        const options = { signal } as unknown as RequestOptions;
        const error = await rejection(neverThrows(() => locks.request(stage.name, options, () => {})));
        assert.ok(error instanceof TypeError, String(error));
        assert.ok((await rejection(neverThrows(() => locks.acquire(stage.name, options)))) instanceof TypeError);
      }
    },
  },
  {
    id: "request/combinations",
    title: "steal with ifAvailable or shared, and signal with either, are refused with NotSupportedError",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const { signal } = new AbortController();
      const combinations: RequestOptions[] = [
        { steal: true, ifAvailable: true },
        { steal: true, mode: "shared" },
        { steal: true, signal },
        { ifAvailable: true, signal },
      ];
      for (const options of combinations) {
        const error = await rejectsWith(
          "NOT_SUPPORTED",
          neverThrows(() => locks.request(stage.name, options, () => assert.fail("called back"))),
        );
        assert.ok(error instanceof NotSupportedError);
        assert.equal(error.name, "NotSupportedError");
      }
    },
  },
  {
    id: "request/checks-first",
    title: "the checks come before an aborted signal",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const signal = AbortSignal.abort(new Error("aborted"));
      await rejectsWith(
        "NOT_SUPPORTED",
        locks.request(stage.name, { signal, ifAvailable: true }, () => {}),
      );
      await rejectsWith(
        "NOT_SUPPORTED",
        locks.request("-", { signal }, () => {}),
      );
      await rejectsWith(
        "CONFIG",
        locks.request(stage.name, { signal, ttlMs: 1 }, () => {}),
      );
      await rejectsWith("CONFIG", locks.acquire("", { signal }));
      const error = await rejection((locks as unknown as Untyped).request(stage.name, { signal }));
      assert.ok(error instanceof TypeError);
    },
  },
  {
    id: "request/checks-before-io",
    title: "the checks come before any I/O: they answer while the engine is frozen",
    needs: { hooks: ["freezeServer", "thawServer"] },
    body: async (stage) => {
      const locks = await stage.connect();
      const thaw = await stage.freeze();
      const calls = [
        rejectsWith(
          "NOT_SUPPORTED",
          locks.request("-", () => {}),
        ),
        rejectsWith("CONFIG", locks.acquire("")),
        rejectsWith("CONFIG", locks.acquire(stage.name, { ttlMs: 1 })),
      ];
      await within(stage.lateMs, "checks", Promise.all(calls));
      await thaw();
    },
  },
  {
    id: "request/empty-options",
    title: "undefined options and options of undefined are as good as none",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const none: RequestOptions = {
        mode: undefined,
        signal: undefined,
        ttlMs: undefined,
        waitMs: undefined,
        ifAvailable: undefined,
        steal: undefined,
        minHoldMs: undefined,
        maxHoldMs: undefined,
        graceMs: undefined,
      };
      assert.equal(await locks.request(stage.name, none, (lock) => lock?.mode), "exclusive");
      assert.equal(await (locks as unknown as Untyped).request(stage.name, undefined, () => 1), 1);
      const lock = await locks.acquire(stage.name, undefined);
      await lock.release();
    },
  },
];

export const WEB_LOCKS: readonly CaseDefinition[] = [...scoped, ...checks];
