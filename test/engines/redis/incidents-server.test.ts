/** Public incidents: what a server does to its locks. The numbers are those of docs/incidents.md. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startFaultProxy } from "../../../servers/fault-proxy.ts";
import { LockLostError } from "../../../src/index.ts";
import { aborted, eventually, incident, locksOn, server, sleep, within } from "./stage.ts";

test(
  "incidents 2, 31: a grant that comes late is never past its lease when it arrives",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    redis.freeze();
    const late = locks.acquire("late", { ttlMs: 400 });
    await sleep(900);
    redis.thaw();
    const lock = await within("the grant", 10_000, late);
    assert.ok(lock.isHeld() && lock.remainingMs() > 0);
    await lock.release();
  }),
);

test(
  "incidents 3, 45: releasing a lock whose lease ran out on a frozen server resolves quietly and in time",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const lock = await locks.acquire("frozen", { ttlMs: 500 });
    redis.freeze();
    await aborted(lock.signal);
    await within("the release", 500, lock.release());
    redis.thaw();
  }),
);

test(
  "incidents 4, 35: a frozen server: the loss is signalled at the local deadline, not when it answers",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis, { commandTimeoutMs: 20_000 });
    const started = performance.now();
    const lock = await locks.acquire("frozen", { ttlMs: 1_500 });
    redis.freeze();
    const reason = await within("the signal", 4_000, aborted(lock.signal));
    assert.ok(performance.now() - started >= 1_400);
    assert.ok(reason instanceof LockLostError && reason.reason === "expired");
    assert.equal(lock.isHeld(), false);
    redis.thaw();
  }),
);

test(
  "incidents 5, 11: a killed server: nothing unhandled, the signal at the deadline, and on again afterwards",
  incident(async (t) => {
    const redis = await server(t);
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on("unhandledRejection", note);
    process.on("uncaughtExceptionMonitor", note);
    t.after(() => {
      process.off("unhandledRejection", note);
      process.off("uncaughtExceptionMonitor", note);
    });
    const locks = await locksOn(t, redis, { commandTimeoutMs: 500 });
    const lock = await locks.acquire("killed", { ttlMs: 1_000 });
    const waiting = locks.acquire("killed", { ttlMs: 1_000, waitMs: 30_000 });
    waiting.catch(() => {});
    await redis.kill();
    await within("the signal", 5_000, aborted(lock.signal));
    assert.equal(lock.isHeld(), false);
    await redis.restart();
    await eventually("locks work again", async () => {
      const again = await locks.acquire("other", { waitMs: 1_000 }).catch(() => null);
      await again?.release();
      return again !== null;
    });
    assert.deepEqual(unhandled, []);
  }),
);

test(
  "incident 7: the scoped form rejects after a loss, though its body ignored the signal",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const outcome = locks.request("lost", { ttlMs: 400 }, async () => {
      redis.freeze();
      await sleep(700);
      redis.thaw();
      return "done";
    });
    await assert.rejects(outcome, LockLostError);
  }),
);

test(
  "incident 8: after expiry the old owner's release leaves the new owner alone",
  incident(async (t) => {
    const redis = await server(t);
    const proxy = await startFaultProxy(redis.port);
    t.after(() => proxy.close());
    const cutOff = await locksOn(t, `redis://${proxy.address}`, { commandTimeoutMs: 500 });
    const locks = await locksOn(t, redis);
    const old = await cutOff.acquire("name", { ttlMs: 400 });
    proxy.set({ toServer: "stall" });
    const next = await within("the next owner", 10_000, locks.acquire("name"));
    const released = old.release();
    proxy.set({ toServer: "pass" });
    await released;
    await sleep(100);
    assert.ok(next.token > old.token);
    await next.renew();
    assert.ok(next.isHeld());
    await next.release();
  }),
);

test(
  "incident 15: a broken connection and a short freeze do not end renewing",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis, { commandTimeoutMs: 400 });
    const lock = await locks.acquire("kept", { ttlMs: 3_000 });
    for (let n = 0; n < 3; n++) {
      await redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await redis.command("CLIENT", "KILL", "TYPE", "pubsub");
      redis.freeze();
      await sleep(600);
      redis.thaw();
      await sleep(900);
      assert.ok(lock.isHeld());
    }
    await lock.renew();
    await lock.release();
  }),
);

test(
  "incident 50: scripts that the server has forgotten are sent again, while holding and waiting",
  incident(async (t) => {
    const redis = await server(t, { durable: true });
    const locks = await locksOn(t, redis);
    const lock = await locks.acquire("name", { ttlMs: 5_000 });
    const waiting = locks.acquire("name");
    await sleep(50);
    await redis.command("SCRIPT", "FLUSH");
    await lock.renew();
    await redis.command("SCRIPT", "FLUSH");
    await lock.release();
    const next = await within("the next one", 10_000, waiting);
    await redis.restart(); // with its data, without its scripts
    await eventually("renewed", async () => {
      await next.renew().catch(() => {});
      return next.isHeld();
    });
    await next.release();
    assert.ok(await locks.tryAcquire("name"));
  }),
);

test(
  "incident 52: a blocked event loop: the loss is a signal, never a crash",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const lock = await locks.acquire("blocked", { ttlMs: 300 });
    const until = performance.now() + 800;
    while (performance.now() < until); // blocks
    assert.equal(lock.isHeld(), false);
    await within("the signal", 2_000, aborted(lock.signal));
    await lock.release();
  }),
);

test(
  "incident 58: a server that may evict locks is noticed when connecting",
  incident(async (t) => {
    const redis = await server(t, { settings: ["maxmemory 50mb", "maxmemory-policy allkeys-lru"] });
    const warnings: string[] = [];
    const note = (warning: Error & { code?: string }) => void warnings.push(warning.code ?? "");
    process.on("warning", note);
    t.after(() => process.off("warning", note));
    await locksOn(t, redis);
    await sleep(10);
    assert.ok(warnings.includes("HOLDFAST_REDIS_EVICTION"));
  }),
);

test(
  "a server restarted with its data: the lock is still held, its waiter still waits, tokens grow",
  incident(async (t) => {
    const redis = await server(t, { durable: true });
    const locks = await locksOn(t, redis, { commandTimeoutMs: 500 });
    const lock = await locks.acquire("kept", { ttlMs: 6_000 });
    const waiting = locks.acquire("kept");
    await sleep(50);
    await redis.restart();
    await eventually("renewed", async () =>
      lock.renew().then(
        () => true,
        () => false,
      ),
    );
    await lock.release();
    const next = await within("the waiter", 15_000, waiting);
    assert.ok(next.token > lock.token);
    await next.release();
  }),
);

test(
  "a server restarted empty: the holder learns that it is gone, tokens still grow",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis, { commandTimeoutMs: 500 });
    const lock = await locks.acquire("lost", { ttlMs: 3_000 });
    await redis.restartEmpty();
    await within("the signal", 10_000, aborted(lock.signal));
    const next = await locks.acquire("lost");
    assert.ok(next.token > lock.token);
    await next.release();
  }),
);
