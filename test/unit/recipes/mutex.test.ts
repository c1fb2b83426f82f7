/** `mutex`: the manager's verbs without the name, and its defaults. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../src/index.ts";

test("request, acquire and tryAcquire lock the same name as the manager does", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m");
  await mutex.request(async (lock) => {
    assert.equal(lock.name, "m");
    assert.equal(await locks.tryAcquire("m"), null);
    assert.equal(await mutex.tryAcquire(), null);
    assert.equal(await mutex.request({ ifAvailable: true }, (inner) => inner), null);
  });
  const held = await mutex.acquire();
  assert.equal(held.mode, "exclusive");
  await assert.rejects(locks.acquire("m", { waitMs: 0 }), { code: "LOCK_TIMEOUT" });
  await held.release();
  assert.equal(await mutex.request(() => "result"), "result");
  await locks.close();
});

test("defaults fill in, the call decides, and the connection's come last", async () => {
  const locks = await connect("memory:", { ttlMs: 1_000 });
  const mutex = locks.mutex("m", { ttlMs: 5_000, waitMs: 20 });
  const held = await mutex.acquire();
  assert.ok(held.remainingMs() > 1_000 && held.remainingMs() <= 5_000);
  await assert.rejects(mutex.acquire(), { code: "LOCK_TIMEOUT" });
  await held.release();
  const longer = await mutex.acquire({ ttlMs: 60_000 });
  assert.ok(longer.remainingMs() > 5_000);
  await longer.release();
  const plain = await locks.mutex("m").acquire();
  assert.ok(plain.remainingMs() <= 1_000);
  await locks.close();
});

test("a default waitMs or signal is no obstacle to tryAcquire, ifAvailable and steal", async () => {
  const locks = await connect("memory:");
  const mutex = locks.mutex("m", { waitMs: 1_000, signal: new AbortController().signal });
  const held = await mutex.acquire();
  assert.equal(await mutex.tryAcquire(), null);
  assert.equal(await mutex.request({ ifAvailable: true }, (lock) => lock), null);
  assert.equal(await mutex.request({ steal: true }, () => "mine"), "mine");
  assert.equal(held.isHeld(), false);
  await assert.rejects(
    mutex.request({ ifAvailable: true, waitMs: 5 }, () => 0),
    { code: "NOT_SUPPORTED" },
  );
  await locks.close();
});

test("wrong defaults and wrong calls are refused with an error that says what", async () => {
  const locks = await connect("memory:");
  assert.throws(() => locks.mutex(""), { code: "CONFIG" });
  assert.throws(() => locks.mutex("m", { ttlMs: 5 }), { code: "CONFIG" });
  assert.throws(() => locks.mutex("m", { mode: "shared" } as object), { code: "CONFIG" }, "the recipe decides");
  const mutex = locks.mutex("m");
  await assert.rejects(mutex.acquire({ mode: "shared" } as object), { code: "CONFIG" });
  await assert.rejects(mutex.request({} as never, undefined as never), TypeError);
  await locks.close();
});
