/** Many calls in one turn of the event loop share a few runs of a script, and none pays for another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { redis } from "../../../src/engines/redis/index.ts";
import type { Ask } from "../../../src/engine/lease-store.ts";
import { redisStore } from "../../../src/engines/redis/index.ts";
import { ConfigError, EngineUnavailableError } from "../../../src/index.ts";
import { incident, locksOn, pending, scriptCalls, server, sleep } from "./stage.ts";

const MANY = 65;
const SPEC = {
  mode: "exclusive",
  limit: 1,
  ttlMs: 30_000,
  graceMs: 0,
  minHoldMs: 0,
  wait: true,
  steal: false,
  client: { clientId: "client", host: "host", pid: 1 },
} as const;

test(
  "65 locks taken in one turn cost five runs, and so do their releases",
  incident(async (t) => {
    const running = await server(t);
    const locks = await locksOn(t, running);
    await locks.request("warm up", () => {});
    const before = await scriptCalls(running);
    const held = await Promise.all(Array.from({ length: MANY }, (_, n) => locks.acquire(`name ${n}`)));
    assert.equal((await scriptCalls(running)) - before, 5);
    assert.equal(new Set(held.map(({ name }) => name)).size, MANY);
    await Promise.all(held.map((lock) => lock.release()));
    assert.equal((await scriptCalls(running)) - before, 10);
    assert.deepEqual((await locks.query()).held, []);
  }),
);

test(
  "requests of one turn for one name stand in the order in which they were made",
  incident(async (t) => {
    const locks = await locksOn(t, await server(t));
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: MANY }, (_, n) =>
        locks.request(n % 2 === 0 ? "even" : "odd", async () => {
          order.push(n);
          await sleep(0);
        }),
      ),
    );
    const of = (rest: number): number[] => order.filter((n) => n % 2 === rest);
    const sorted = (list: number[]): number[] => list.toSorted((left, right) => left - right);
    assert.deepEqual(of(0), sorted(of(0)));
    assert.deepEqual(of(1), sorted(of(1)));
    assert.equal(order.length, MANY);
  }),
);

test(
  "each call of a run has its own answer: held, pending, busy, shared, stolen",
  incident(async (t) => {
    const running = await server(t);
    const [locks, others] = [await locksOn(t, running), await locksOn(t, running)];
    const stolen = await others.acquire("stolen");
    const lost = new Promise((resolve) => stolen.signal.addEventListener("abort", resolve, { once: true }));
    const taken = await others.acquire("taken");
    const reading = await others.acquire("read", { mode: "shared" });

    const free = locks.acquire("free");
    const waits = locks.acquire("taken");
    const busy = locks.tryAcquire("taken");
    const reads = locks.acquire("read", { mode: "shared" });
    const writes = locks.tryAcquire("read");
    const thief = locks.request("stolen", { steal: true }, ({ token }) => token);

    assert.equal((await free).name, "free");
    assert.equal(await busy, null);
    assert.equal((await reads).mode, "shared");
    assert.equal(await writes, null);
    assert.ok((await thief) > stolen.token);
    await lost;
    assert.equal(await pending(locks, "taken"), 1);
    await taken.release();
    assert.ok((await waits).token > taken.token);
    await reading.release();
  }),
);

test(
  "a key of somebody else fails its own request only",
  incident(async (t) => {
    const running = await server(t);
    const locks = await locksOn(t, running);
    await running.command("LPUSH", "holdfast:{theirs}", "a list");
    const names = Array.from({ length: 20 }, (_, n) => `name ${n}`).toSpliced(10, 0, "theirs");
    const outcomes = await Promise.allSettled(names.map((name) => locks.acquire(name)));
    const failed = outcomes.flatMap((outcome, n) => (outcome.status === "rejected" ? [names[n]] : []));
    assert.deepEqual(failed, ["theirs"]);
    const held = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    await Promise.all(held.map((lock) => lock.release()));
    assert.deepEqual((await locks.query()).held, []);
    const reason = outcomes[10]?.status === "rejected" ? (outcomes[10].reason as unknown) : undefined;
    assert.ok(reason instanceof EngineUnavailableError || reason instanceof ConfigError, String(reason));
  }),
);

test("beside a key of somebody else nobody has to ask twice", async (t) => {
  const running = await server(t);
  await running.command("LPUSH", "holdfast:{theirs}", "a list");
  const store = redisStore({ url: running.url });
  await store.open({ granted() {}, check() {}, checkAll() {} });
  try {
    // Straight at the store: the lease engine would ask again by itself.
    const names = ["first", "a", "b", "theirs", "c"];
    const outcomes = await Promise.allSettled(names.map((name) => store.request(askFor(name))));
    const states = outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value.state : "failed"));
    assert.deepEqual(states, ["held", "held", "held", "failed", "held"]);
  } finally {
    await store.close();
  }
});

function askFor(name: string): Ask {
  const client = { clientId: "test", host: "here", pid: 1 };
  const lease = { ttlMs: 30_000, pendingTtlMs: 10_000, minHoldMs: 0 };
  return { name, owner: `owner of ${name}`, mode: "exclusive", limit: 1, wait: true, steal: false, client, ...lease };
}

test(
  "releases of one turn: minimum holds keep their places, the others are free",
  incident(async (t) => {
    const locks = await locksOn(t, await server(t));
    const held = await Promise.all(
      Array.from({ length: 20 }, (_, n) => locks.acquire(`name ${n}`, { minHoldMs: n % 4 === 0 ? 60_000 : 0 })),
    );
    await Promise.all(held.map((lock) => lock.release()));
    const kept = (await locks.query()).held.map(({ name }) => Number(name.slice(5)));
    assert.deepEqual(
      kept.toSorted((left, right) => left - right),
      [0, 4, 8, 12, 16],
    );
  }),
);

test(
  "what is asked in one turn for one name is done in that order, whatever it is",
  incident(async (t) => {
    const locks = await locksOn(t, await server(t));
    await locks.request("warm up", () => {});
    const [first, second] = [await locks.acquire("first"), await locks.acquire("second")];
    const releases = [first.release(), second.release()];
    const again = locks.tryAcquire("second");
    const busy = locks.tryAcquire("second");
    const query = locks.query();
    assert.equal((await again)?.name, "second");
    assert.equal(await busy, null);
    assert.deepEqual(
      (await query).held.map(({ name }) => name),
      ["second"],
    );
    await Promise.all(releases);
  }),
);

test(
  "requests that differ in what they publish keep their order at a name",
  incident(async (t) => {
    const running = await server(t);
    const engine = redis({ url: running.url });
    await engine.open();
    t.after(() => engine.close());
    const order: number[] = [];
    const requests = Array.from({ length: 40 }, async (_, n) => {
      const grant = await engine.request({ ...SPEC, name: "name", value: `value ${n % 3}` });
      order.push(n);
      await grant?.release();
    });
    await Promise.all(requests);
    assert.deepEqual(
      order,
      Array.from({ length: 40 }, (_, n) => n),
    );
  }),
);
