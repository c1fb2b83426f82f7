/** `{ reentrant: true }`: the scoped form enters its own hold again, as the async context tells. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type HeldLock } from "../../../src/index.ts";
import type { Hold } from "../../../src/lock/hold.ts";
import { Scope } from "../../../src/lock/nesting.ts";

test("a nested request goes on under the same hold, and the hold ends with the outermost", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  await mutex.request(async (outer) => {
    const result = await mutex.request(async (inner) => {
      assert.equal(inner.token, outer.token);
      return await locks.mutex("m", { reentrant: true }).request((innermost) => innermost.token === outer.token);
    });
    assert.equal(result, true);
    assert.ok(outer.isHeld());
    assert.equal(await locks.tryAcquire("m"), null, "still held");
  });
  const free = await locks.tryAcquire("m");
  assert.ok(free);
  await locks.close();
});

test("incident 22: another task, another mutex and a plain request are kept out", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  const order: string[] = [];
  const holding = mutex.request(async () => {
    await sleep(20);
    assert.equal(await locks.request("m", { ifAvailable: true }, (lock) => lock), null, "not re-entrant");
    assert.equal(await locks.mutex("m").tryAcquire(), null, "not re-entrant");
    assert.equal(await mutex.tryAcquire(), null, "the handle form never enters again");
    assert.ok(await locks.mutex("other", { reentrant: true }).request((lock) => lock.name === "other"));
    order.push("first");
  });
  await Promise.all([holding, mutex.request(() => order.push("second"))]);
  assert.deepEqual(order, ["first", "second"]);
  await locks.close();
});

test("sibling branches run one after the other", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  const order: string[] = [];
  const branch = (name: string) =>
    mutex.request(async () => {
      order.push(`${name} in`);
      await mutex.request(() => sleep(5));
      order.push(`${name} out`);
    });
  await mutex.request(() => Promise.all([branch("a"), branch("b"), branch("c")]));
  assert.deepEqual(order, ["a in", "a out", "b in", "b out", "c in", "c out"]);
  await locks.close();
});

test("the hold lasts until a branch that nobody awaits has ended, and `request` settles after that", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  let ended = false;
  let branch: Promise<void> | undefined;
  await mutex.request(() => {
    branch = mutex.request(async (lock) => {
      await sleep(20);
      assert.ok(lock.isHeld());
      ended = true;
    });
  });
  assert.ok(ended);
  await branch;
  await locks.close();
});

test("a branch that comes when the hold has been released is refused", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  const late = Promise.withResolvers<void>();
  const stray = await mutex.request(() => ({ outcome: late.promise.then(() => mutex.request(() => "ran")) }));
  late.resolve();
  await assert.rejects(stray.outcome, { code: "CLOSED" });
  assert.equal(await mutex.request(() => "ran"), "ran", "outside it is a new hold");
  await locks.close();
});

test("a branch whose own callback is over enters the hold that is still open around it", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  await mutex.request(async (outer) => {
    const late = Promise.withResolvers<void>();
    const stray = await mutex.request(() => ({ token: late.promise.then(() => mutex.request((lock) => lock.token)) }));
    late.resolve();
    assert.equal(await stray.token, outer.token);
  });
  await locks.close();
});

test("a waiting branch gives up by time-out, by its signal, or at once", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  await mutex.request(async () => {
    const first = mutex.request(() => sleep(60));
    const controller = new AbortController();
    const aborted = mutex.request({ signal: controller.signal }, () => assert.fail("aborted"));
    const timedOut = mutex.request({ waitMs: 5 }, () => assert.fail("timed out"));
    assert.equal(await mutex.request({ ifAvailable: true }, (lock) => lock), null);
    controller.abort(new Error("enough"));
    await assert.rejects(aborted, /enough/);
    await assert.rejects(timedOut, { code: "LOCK_TIMEOUT" });
    const last = mutex.request((lock) => lock?.isHeld());
    await first;
    assert.equal(await last, true, "those that gave up are passed over");
  });
  await locks.close();
});

test("a loss reaches every level", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  const outer = mutex.request(async (lock) => {
    const inner = mutex.request(async () => {
      await locks.evict("m", lock.token);
      await sleep(5);
      return "unprotected";
    });
    await assert.rejects(inner, { code: "LOCK_LOST", reason: "evicted" });
    await assert.rejects(
      mutex.request(() => "unprotected"),
      { code: "LOCK_LOST" },
    );
  });
  await assert.rejects(outer, { code: "LOCK_LOST", reason: "evicted" });
  await locks.close();
});

test("an error of a nested callback passes through and harms no sibling", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { reentrant: true });
  await mutex.request(async (outer) => {
    const outcomes = await Promise.allSettled([
      mutex.request(() => Promise.reject(new Error("inner"))),
      mutex.request(() => "fine"),
    ]);
    assert.equal(outcomes[0].status, "rejected");
    assert.deepEqual(outcomes[1], { status: "fulfilled", value: "fine" });
    assert.ok(outer.isHeld());
  });
  await locks.close();
});

test("a scope leaves out those around it that have closed: self-starting callbacks grow no chain", async () => {
  const scope = (around?: Scope) => new Scope({} as Hold, {} as HeldLock, false, around);
  const outer = scope();
  const first = scope(outer);
  await first.close();
  const second = scope(first);
  assert.equal(second.outer, outer);
  await second.close();
  await outer.close();
  assert.equal(scope(second).outer, undefined);
});

test("an awaited nested request that waits for its own callback is warned about, once", async (t) => {
  const locks = await connect("memory:");
  const warnings: string[] = [];
  const onWarning = (warning: Error & { code?: string }): void => void warnings.push(warning.code ?? "");
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  await locks.request("m", async () => {
    await assert.rejects(
      locks.request("m", { waitMs: 1_300 }, () => 0),
      { code: "LOCK_TIMEOUT" },
    );
    await assert.rejects(locks.acquire("m", { waitMs: 1_300 }), { code: "LOCK_TIMEOUT" });
  });
  assert.deepEqual(warnings, ["HOLDFAST_NESTED"]);
  await locks.close();
});
