/** Ways in which lock libraries have failed in public, and nodes that are dead, frozen or slow. Numbers: see the incidents page. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startFaultProxy } from "../../../servers/fault-proxy.ts";
import { redlock } from "../../../src/engines/redlock/index.ts";
import { connect, EngineUnavailableError, LockLostError } from "../../../src/index.ts";
import { startDeployment, TERMS, type Deployment } from "./deployment.ts";

/** Within which an acquire and a renewal have to succeed with two of five nodes out. Far over the time-out of a node. */
const STATED_MS = 3_000;

describe("four nodes", () => {
  let deployment: Deployment;
  before(async () => (deployment = await startDeployment(4)));
  after(async () => await deployment.stop());

  test("incident 1: with an even number of nodes and split votes every acquire settles", async () => {
    const managers = await Promise.all(Array.from({ length: 4 }, () => deployment.connect()));
    for (let round = 0; round < 5; round++) {
      const held = managers.map((locks) => locks.request("split", { waitMs: 20_000 }, (lock) => lock.token));
      const tokens = await Promise.all(held);
      assert.equal(new Set(tokens).size, managers.length);
    }
  });
});

describe("five nodes", () => {
  let deployment: Deployment;
  before(async () => (deployment = await startDeployment(5)));
  after(async () => await deployment.stop());

  const freeze = (...numbers: readonly number[]): (() => void) => {
    for (const number of numbers) deployment.servers[number]?.freeze();
    return () => {
      for (const number of numbers) deployment.servers[number]?.thaw();
    };
  };

  test("incident 2: after a long wait the lock has its whole lease before it", async () => {
    const [left, right] = await Promise.all([deployment.connect(), deployment.connect()]);
    const first = await left.acquire("long wait");
    const waiting = right.acquire("long wait", { ttlMs: 1_000 });
    await pause(2_000);
    await first.release();
    const lock = await waiting;
    assert.ok(lock.remainingMs() > 600, `${lock.remainingMs()} ms left`);
    await lock.release();
  });

  test("incident 3: releasing an expired lock resolves quietly, at once", async () => {
    const locks = await deployment.connect({}, 500);
    const lock = await locks.acquire("expired");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
    const startMs = performance.now();
    await lock.release();
    assert.ok(performance.now() - startMs < 1_500);
  });

  test("incident 4: all servers frozen: the loss is signalled at the deadline, not when they answer", async () => {
    const locks = await deployment.connect();
    const lock = await locks.acquire("frozen", { ttlMs: 1_000 });
    const lost = new Promise((resolve) => lock.signal.addEventListener("abort", () => resolve(lock.signal.reason)));
    const thaw = freeze(0, 1, 2, 3, 4);
    const startMs = performance.now();
    const reason = await lost.finally(thaw);
    assert.ok(reason instanceof LockLostError);
    assert.ok(performance.now() - startMs < 2_500);
    assert.equal(lock.isHeld(), false);
  });

  test("incident 7: the scoped form rejects after a loss that its body did not look at", async () => {
    const locks = await deployment.connect();
    const body = async (): Promise<string> => {
      const thaw = freeze(0, 1, 2, 3, 4);
      await pause(1_800);
      thaw();
      return "done";
    };
    await assert.rejects(locks.request("body", { ttlMs: 1_000 }, body), LockLostError);
  });

  test("incident 8: the old owner does not release the new owner's lock", async () => {
    const [left, right] = await Promise.all([deployment.connect({}, 500), deployment.connect()]);
    const old = await left.acquire("taken over");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
    const next = await right.acquire("taken over", { waitMs: 8_000 });
    await old.release();
    await next.renew();
    assert.ok(next.isHeld());
    assert.equal(await left.tryAcquire("taken over"), null);
    await next.release();
  });

  test("two of five slow: acquire and renew within the stated time", async () => {
    const proxies = await Promise.all(deployment.servers.slice(0, 2).map(({ port }) => startFaultProxy(port)));
    const urls = deployment.servers.map(({ url }, number) => {
      const proxy = proxies[number];
      return proxy === undefined ? url : `redis://${proxy.address}`;
    });
    const locks = await connect(redlock({ urls, ...TERMS }), { ttlMs: 3_000 });
    for (const proxy of proxies) proxy.set({ delayMs: 1_000 });
    const startMs = performance.now();
    const lock = await locks.acquire("slow");
    await lock.renew();
    assert.ok(performance.now() - startMs < STATED_MS);
    await lock.release();
    for (const proxy of proxies) proxy.set({ delayMs: 0 });
    await locks.close();
    await Promise.all(proxies.map((proxy) => proxy.close()));
  });

  test("two of five frozen: acquire and renew within the stated time, also for a client that has just started", async () => {
    const early = await deployment.connect();
    const thaw = freeze(3, 4);
    try {
      for (const locks of [early, await deployment.connect()]) {
        const startMs = performance.now();
        const lock = await locks.acquire("frozen two");
        await lock.renew();
        assert.ok(performance.now() - startMs < STATED_MS);
        await lock.release();
      }
    } finally {
      thaw();
    }
  });

  test("three of five frozen: a clear error within the wait time, none hangs", async () => {
    const locks = await deployment.connect();
    const thaw = freeze(2, 3, 4);
    const startMs = performance.now();
    try {
      await assert.rejects(locks.acquire("frozen three", { waitMs: 6_000 }), EngineUnavailableError);
      assert.ok(performance.now() - startMs < 6_000);
      await assert.rejects(locks.tryAcquire("frozen three"), EngineUnavailableError);
    } finally {
      thaw();
    }
  });
});

describe("nodes that die", () => {
  let deployment: Deployment;
  before(async () => (deployment = await startDeployment(5)));
  after(async () => await deployment.stop());

  test("incidents 46, 48: two of five dead are no error; one that comes back joins a held lock again", async () => {
    const locks = await deployment.connect();
    const held = await locks.acquire("kept", { ttlMs: 3_000 });
    await Promise.all([deployment.servers[3]?.kill(), deployment.servers[4]?.kill()]);
    const startMs = performance.now();
    const other = await locks.acquire("another");
    await other.renew();
    assert.ok(performance.now() - startMs < STATED_MS);
    await other.release();
    await deployment.servers[4]?.restartEmpty();
    // Its quarantine, and a renewal.
    const key = "holdfast:redlock:lock:kept";
    for (let tries = 0; tries < 60; tries++) {
      await pause(250);
      if (/\|.{12}\./.test(String(await deployment.servers[4]?.command("GET", key)))) break;
    }
    assert.match(String(await deployment.servers[4]?.command("GET", key)), /\|.{12}\./, "it has not joined");
    assert.ok(held.isHeld());
    await held.release();
  });

  test("incidents 5, 11: all servers killed: the signal at the deadline, and nothing unhandled", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", note);
    const locks = await deployment.connect();
    const lock = await locks.acquire("killed", { ttlMs: 1_000 });
    const lost = new Promise((resolve) => lock.signal.addEventListener("abort", resolve));
    await Promise.all(deployment.servers.map((server) => server.kill()));
    const startMs = performance.now();
    const alive = setInterval(() => {}, 1_000); // a held lock keeps no process alive
    await lost;
    clearInterval(alive);
    assert.ok(performance.now() - startMs < 2_500);
    assert.equal(lock.isHeld(), false);
    await assert.rejects(locks.acquire("killed", { waitMs: 6_000 }), (error: Error) => {
      assert.ok(error instanceof EngineUnavailableError);
      assert.match(error.message, /3 of 5 nodes are needed/);
      return true;
    });
    assert.ok(performance.now() - startMs < 9_000);
    // Incident 6: with the work ended, nothing of ours keeps the process alive.
    await locks.close();
    await pause(50);
    process.off("unhandledRejection", note);
    assert.deepEqual(unhandled, []);
    const timers = process.getActiveResourcesInfo().filter((resource) => resource === "Timeout");
    assert.ok(timers.length <= 1, `incident 6: ${timers.length} timers are left`);
  });
});
