/** Public incidents: what clients do to each other's places. The numbers are those of docs/incidents.md. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { test } from "node:test";
import { startFaultProxy } from "../../../servers/fault-proxy.ts";
import { systemClock, type Clock } from "../../../src/engine/clock.ts";
import type { Ask, StoreEvents } from "../../../src/engine/lease-store.ts";
import { redisStore } from "../../../src/engines/redis/index.ts";
import { LockLostError } from "../../../src/index.ts";
import { aborted, eventually, incident, locksOn, pending, scriptCalls, server, sleep, within } from "./stage.ts";

const SILENT: StoreEvents = { granted: () => {}, check: () => {}, checkAll: () => {} };

function ask(name: string, owner: string, more: Partial<Ask> = {}): Ask {
  const client = { clientId: owner, host: "host", pid: 1 };
  const wish = {
    mode: "exclusive",
    limit: 1,
    ttlMs: 600,
    pendingTtlMs: 600,
    minHoldMs: 0,
    wait: true,
    steal: false,
  } as const;
  return { name, owner, client, ...wish, ...more };
}

test(
  "incident 9: owners do not come from Math.random",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    t.mock.method(Math, "random", () => 0.5);
    const held = await Promise.all(Array.from({ length: 50 }, (_, n) => locks.acquire(`name-${n}`)));
    const states = await Promise.all(held.map(({ name }) => redis.command("GET", `holdfast:{${name}}`)));
    const owners = states.map((state) => /[\w-]{22}(?=holdfast:bell:)/.exec(String(state))?.[0]);
    assert.equal(new Set(owners).size, 50);
    assert.ok(!owners.includes(undefined));
    await Promise.all(held.map((lock) => lock.release()));
  }),
);

test(
  "incident 10: every bell is lost, ten waiters are served all the same, a keep-alive apart at most",
  incident(async (t) => {
    const redis = await server(t);
    const proxy = await startFaultProxy(redis.port);
    t.after(() => proxy.close());
    proxy.set({ lose: (bytes) => bytes.includes("$7\r\nmessage\r\n") });
    const all = await Promise.all(Array.from({ length: 10 }, () => locksOn(t, `redis://${proxy.address}`)));
    let inside = 0;
    let served = 0;
    const started = performance.now();
    await Promise.all(
      all.map((locks) =>
        locks.request("bells", { ttlMs: 900 }, async () => {
          assert.equal(++inside, 1);
          await sleep(5);
          inside--;
          served++;
        }),
      ),
    );
    assert.equal(served, 10);
    const tookMs = performance.now() - started;
    assert.ok(tookMs < 10 * 900, `${tookMs} ms`);
  }),
);

test(
  "incident 12: an acquire that was cancelled while the server was frozen holds nothing afterwards",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    await locks.acquire("warm up").then((lock) => lock.release());
    const abort = new AbortController();
    redis.freeze();
    const cancelled = locks.acquire("name", { signal: abort.signal });
    await sleep(50);
    abort.abort();
    await assert.rejects(cancelled, { name: "AbortError" });
    redis.thaw();
    await eventually("the late grant is undone", async () => {
      const { held } = await locks.query({ prefix: "name" });
      return held.length === 0;
    });
  }),
);

test(
  "incidents 13, 51: after quick releases nothing is renewed; a hundred waiters cost next to no commands",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    for (let n = 0; n < 200; n++) await locks.request("quick", { ttlMs: 100 }, () => {});
    const before = await scriptCalls(redis);
    await sleep(400);
    assert.equal(await scriptCalls(redis), before);

    const holder = await locks.acquire("busy");
    const others = await Promise.all(Array.from({ length: 4 }, () => locksOn(t, redis)));
    const waiting = Array.from({ length: 100 }, (_, n) => others[n % 4]?.acquire("busy"));
    await eventually("all wait", async () => (await pending(locks, "busy")) === 100, 30_000);
    const from = await scriptCalls(redis);
    await sleep(4_000);
    const calls = (await scriptCalls(redis)) - from;
    assert.ok(calls <= 4 * 8, `${calls} commands in 4 s`);
    await holder.release();
    await Promise.all(waiting.map(async (each) => (await each)?.release()));
  }),
);

test(
  "incident 14: maxHoldMs ends what its user has forgotten",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const lock = await locks.acquire("forgotten", { ttlMs: 400, maxHoldMs: 700 });
    const reason = await within("the signal", 5_000, aborted(lock.signal));
    assert.ok(reason instanceof LockLostError && reason.reason === "max-hold");
    await within("the next one", 5_000, locks.acquire("forgotten")).then((next) => next.release());
  }),
);

test(
  "incidents 16, 19: a dead holder's place ends by its own lease; a living reader renews its own only",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const dead = redisStore({ url: redis.url });
    await dead.open(SILENT);
    t.after(() => dead.close());
    assert.equal((await dead.request(ask("queue", "dead"))).state, "held");
    const next = await within("the next of the queue", 10_000, locks.acquire("queue"));
    await next.release();

    await dead.request(ask("readers", "dead reader", { mode: "shared", limit: Infinity }));
    const reader = await locks.acquire("readers", { mode: "shared", ttlMs: 600 });
    await sleep(1_200);
    const { held } = await locks.query({ prefix: "readers" });
    assert.equal(held.length, 1);
    await reader.release();
    await within("the writer", 5_000, locks.acquire("readers")).then((writer) => writer.release());
  }),
);

test(
  "incident 17: clients whose clocks are hours apart share one queue and its leases",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const drifted = await locksOn(t, redis, { clock: driftedBy(5 * 3_600_000) });
    const first = await locks.acquire("clocks", { ttlMs: 900 });
    const second = drifted.acquire("clocks", { ttlMs: 900 });
    await eventually("it waits", async () => (await pending(locks, "clocks")) === 1);
    const third = locks.acquire("clocks");
    await sleep(1_500);
    assert.ok(first.isHeld());
    const { held } = await drifted.query({ prefix: "clocks" });
    assert.ok((held[0]?.remainingMs ?? -1) > 0 && (held[0]?.remainingMs ?? Infinity) <= 900);
    await first.release();
    const lock = await within("the drifted one", 5_000, second);
    assert.ok(lock.isHeld());
    await lock.release();
    await (await third).release();
  }),
);

test(
  "incident 18: the state of a lease is on its handle",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const old = await locks.acquire("handle", { ttlMs: 300 });
    redis.freeze();
    await aborted(old.signal);
    redis.thaw();
    const fresh = await within("a fresh one", 5_000, locks.acquire("handle", { ttlMs: 5_000 }));
    assert.ok(fresh.remainingMs() > 2_000);
    assert.equal(old.isHeld(), false);
    assert.ok(fresh.token > old.token);
    await old.release();
    await fresh.renew();
    await fresh.release();
  }),
);

test(
  "incident 33: a repeated unlock leaves the next hold of the name alone",
  incident(async (t) => {
    const redis = await server(t);
    const store = redisStore({ url: redis.url });
    await store.open(SILENT);
    t.after(() => store.close());
    await store.request(ask("name", "one"));
    await store.release("name", "one");
    const next = await store.request(ask("name", "two"));
    await store.release("name", "one");
    await store.withdraw("name", "one");
    assert.deepEqual(await store.renew([ask("name", "two")]), [next]);
  }),
);

const HOSTILE = [
  "a",
  "A",
  "a ",
  "a/",
  "a/b",
  "/",
  "..",
  "}",
  "{",
  "{a}",
  "a}",
  "a}:q",
  "%7D",
  "%",
  "a*",
  "a?",
  "[a]",
  "\\",
  "a\0b",
  "ä",
  "a\u0308",
  "\n",
  "🔒",
  "a:d",
  "holdfast:{a}",
];

test(
  "incidents 34, 40: names are data: hostile ones are all different, all free, all listed",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const held = await Promise.all(HOSTILE.map((name) => locks.tryAcquire(name)));
    assert.ok(held.every((lock) => lock !== null));
    const waiting = HOSTILE.map((name) => locks.acquire(name)); // now the queue's other keys exist as well
    await eventually("all wait", async () => (await locks.query()).pending.length === HOSTILE.length);
    const listed = (await locks.query()).held.map(({ name }) => name);
    assert.deepEqual(listed.sort(), HOSTILE.toSorted());
    for (const prefix of ["a", "[", "\\", "}", "*", "%"]) {
      const names = new Set((await locks.query({ prefix })).held.map(({ name }) => name));
      assert.deepEqual([...names].sort(), HOSTILE.filter((name) => name.startsWith(prefix)).sort());
    }
    await Promise.all(held.map((lock) => lock?.release()));
    await Promise.all(waiting.map(async (each) => (await each).release()));
    assert.deepEqual((await locks.query()).held, []);
  }),
);

test(
  "incident 64: a minimum hold survives release and crash",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const started = performance.now();
    const lock = await locks.acquire("at least", { minHoldMs: 900 });
    await lock.release();
    assert.equal(await locks.tryAcquire("at least"), null);
    const next = await within("the next one", 10_000, locks.acquire("at least"));
    assert.ok(performance.now() - started >= 890);
    await next.release();

    const dead = redisStore({ url: redis.url });
    await dead.open(SILENT);
    const crashed = performance.now();
    await dead.request(ask("crash", "owner", { ttlMs: 200, pendingTtlMs: 200, minHoldMs: 1_200 }));
    await dead.close();
    await within("after the crash", 10_000, locks.acquire("crash")).then((after) => after.release());
    assert.ok(performance.now() - crashed >= 1_190);
  }),
);

test(
  "incident 67: a waiter that was there before a theft is granted a higher token than the thief's",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const victim = await locks.acquire("theft");
    const waiting = locks.acquire("theft");
    await eventually("it waits", async () => (await pending(locks, "theft")) === 1);
    let stolen = 0n;
    await locks.request("theft", { steal: true }, async (lock) => {
      stolen = lock.token;
      await within("the victim", 5_000, aborted(victim.signal));
    });
    const next = await waiting;
    assert.ok(victim.token < stolen && stolen < next.token);
    await next.release();
  }),
);

test(
  "incident 68: a semaphore's waiter is granted whichever holder leaves",
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const permits = locks.semaphore("three", { permits: 3 });
    for (let leaver = 0; leaver < 3; leaver++) {
      const held = await Promise.all([permits.acquire(), permits.acquire(), permits.acquire()]);
      const waiting = permits.acquire();
      await eventually("it waits", async () => (await pending(locks, "three")) === 1);
      await held[leaver]?.release();
      const next = await within("the waiter", 5_000, waiting);
      await Promise.all([...held, next].map((lock) => lock.release()));
    }
  }),
);

test(
  "twenty waiters in one stopped process: the living one behind them is served when their leases are over",
  { timeout: 60_000 },
  incident(async (t) => {
    const redis = await server(t);
    const locks = await locksOn(t, redis);
    const holder = await locks.acquire("stopped");
    const program = fork(new URL("waiters.ts", import.meta.url), [redis.url, "stopped", "20"]);
    t.after(() => program.kill("SIGKILL"));
    await eventually("they wait", async () => (await pending(locks, "stopped")) === 20, 30_000);
    const living = locks.acquire("stopped", { ttlMs: 3_000 });
    await eventually("it waits", async () => (await pending(locks, "stopped")) === 21);
    program.kill("SIGSTOP");
    await sleep(100);
    const released = performance.now();
    await holder.release(); // to a process that hears and does not wake
    // Their leases of 3 s all end within 3 s of the stop; the living one asks again then, or at its next keep-alive.
    const lock = await within("the living one", 3_000 + 1_000 + 3_000, living);
    t.diagnostic(`served ${Math.round(performance.now() - released)} ms after the release`);
    await lock.release();
  }),
);

/** The machine's clock, hours away. */
function driftedBy(driftMs: number): Clock {
  return {
    wallMs: () => systemClock.wallMs() + driftMs,
    monotonicMs: () => systemClock.monotonicMs(),
    after: (delayMs: number, run: () => void) => systemClock.after(delayMs, run),
    stayAlive: () => systemClock.stayAlive(),
    random: () => systemClock.random(),
    randomBytes: (size: number) => systemClock.randomBytes(size),
  };
}
