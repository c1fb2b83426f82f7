/** The queue in Lua against the reference in memory: random verbs on a real server whose clock is moved in step. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startRedis, type RedisServer } from "../../../servers/redis.ts";
import { systemClock } from "../../../src/engine/clock.ts";
import type { Answer, Ask, StoreEvents } from "../../../src/engine/lease-store.ts";
import { MemorySpace, type Moment } from "../../../src/engines/memory/space.ts";
import { RedisStore } from "../../../src/engines/redis/store.ts";
import { fromUrl } from "../../../src/redis/index.ts";

/** Time moves in steps of this; every lease ends half-way between two steps, so that real time makes no difference. */
const STEP_MS = 7_000;
const HALF_MS = STEP_MS / 2;
const OPTIONS = { clock: systemClock, commandTimeoutMs: 10_000, connectTimeoutMs: 5_000 };

let server: RedisServer;
let stores: RedisStore[] = [];
/** Bells by what they say, in no order. */
let rung: string[] = [];

before(async () => {
  server = await startRedis({ clock: true });
  stores = await Promise.all(
    [0, 1].map(async () => {
      const store = new RedisStore({
        clock: systemClock,
        connect: () => fromUrl(server.url, OPTIONS),
        prefix: "holdfast:",
        rememberMs: 3_600_000,
        minReplicas: 0,
        replicaTimeoutMs: 1_000,
      });
      await store.open(bell(rung));
      return store;
    }),
  );
});
after(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server.stop();
});

const SEED = Number(process.env["HOLDFAST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

for (let round = 0; round < 60; round++) {
  test(`seed ${SEED + round}: the same states as the reference`, async () => {
    await play(`name-${round}`, random(SEED + round), 60);
  });
}

async function play(name: string, draw: (below: number) => number, steps: number): Promise<void> {
  const space = new MemorySpace();
  const heard: string[] = [];
  const asks: Ask[] = [];
  let nowMs = 1_000_000;
  const moment = (): Moment => ({ monoMs: nowMs, wallMs: nowMs });
  const story: string[] = [];
  let offsetMs = 0;
  await server.setClockOffset(offsetMs);
  for (let step = 0; step < steps; step++) {
    rung.length = 0;
    heard.length = 0;
    const store = stores[draw(stores.length)];
    const ask = asks[draw(Math.max(asks.length, 1))];
    assert.ok(store !== undefined);
    let ours: unknown;
    let theirs: unknown;
    const verb = draw(12);
    if (verb < 4 || ask === undefined) {
      const fresh = randomAsk(name, asks.length, draw);
      if (fresh.wait) asks.push(fresh);
      story.push(
        `request ${fresh.owner} ${fresh.mode} ${fresh.limit}${fresh.wait ? "" : " no wait"}${fresh.steal ? " steal" : ""} hold ${fresh.minHoldMs}`,
      );
      ours = plain(await store.request(fresh));
      theirs = plain(space.request(fresh, bell(heard), moment()));
    } else if (verb < 6) {
      story.push(`renew ${ask.owner}`);
      ours = (await store.renew([ask])).map(plain);
      theirs = [plain(space.renew(name, ask.owner, ask.ttlMs, ask.pendingTtlMs, moment()))];
    } else if (verb === 6 && space.list(name, moment()).some((each) => each.ask === ask && each.events !== undefined)) {
      story.push(`request again ${ask.owner}`);
      ours = plain(await store.request(ask));
      theirs = plain(space.request(ask, bell(heard), moment()));
    } else if (verb <= 7) {
      story.push(`withdraw ${ask.owner}`);
      await store.withdraw(name, ask.owner);
      space.leave(name, ask.owner, false, moment());
    } else if (verb < 10) {
      const [holder] = space.list(name, moment());
      if (holder?.token !== undefined) {
        story.push(`release ${holder.ask.owner}`);
        await store.release(name, holder.ask.owner);
        space.leave(name, holder.ask.owner, true, moment());
      }
    } else if (verb === 10) {
      story.push("time passes");
      nowMs += STEP_MS;
      offsetMs += STEP_MS;
      await server.setClockOffset(offsetMs);
    } else {
      const held = (await store.inspect(name)).filter(({ token }) => token !== null);
      const index = draw(Math.max(held.length, 1));
      const victim = space.list(name, moment()).filter(({ token }) => token !== undefined)[index];
      story.push(`evict holder ${index}`);
      ours = await store.evict(name, held[index]?.token ?? 1n);
      theirs = space.evict(name, victim?.token ?? 1n, moment());
    }
    const context = `step ${step}\n${story.join("\n")}`;
    assert.deepEqual(ours, theirs, context);
    const list = await store.inspect(name);
    const reference = space.list(name, moment());
    assert.deepEqual(
      list.map(({ mode, limit, token, client }) => [mode, limit, token !== null, client.clientId]),
      reference.map(({ mode, limit, token, ask: { client } }) => [mode, limit, token !== undefined, client.clientId]),
      context,
    );
    const tokens = list.flatMap(({ token }) => (token === null ? [] : [token]));
    assert.deepEqual(
      tokens,
      tokens.toSorted((a, b) => (a < b ? -1 : 1)),
      context,
    );
    for (const [n, entry] of list.entries()) {
      const left = Math.max(reference[n]?.expiresAtMs ?? 0, reference[n]?.holdUntilMs ?? 0) - nowMs;
      assert.ok(
        Math.abs((entry.remainingMs ?? 0) - left) < HALF_MS - 100,
        `${context}\n${entry.remainingMs} ≠ ${left}`,
      );
    }
    await Promise.all(stores.map((each) => flush(each)));
    assert.deepEqual([...new Set(rung)].sort(), [...new Set(heard)].sort(), context);
  }
}

function randomAsk(name: string, n: number, draw: (below: number) => number): Ask {
  const mode = draw(2) === 0 ? "exclusive" : "shared";
  const steal = mode === "exclusive" && draw(8) === 0;
  return {
    name,
    owner: `owner-${n}-${draw(1_000_000)}`,
    mode,
    limit: mode === "exclusive" ? 1 : ([1, 2, 3, Infinity][draw(4)] ?? 1),
    ttlMs: [HALF_MS * 3, HALF_MS * 7][draw(2)] ?? HALF_MS,
    pendingTtlMs: HALF_MS * 3,
    minHoldMs: draw(4) === 0 ? HALF_MS * 5 : 0,
    wait: steal || draw(5) > 0,
    steal,
    client: { clientId: `client-${n}`, host: "host name", pid: n },
  };
}

/**
 * What has to be equal. `recheckMs` may be too small (what is too large costs liveness, which the conformance kit sees);
 * the reason of an end is remembered for different times.
 */
function plain(answer: Answer): unknown {
  if (answer.state === "held") return { state: "held", ttlMs: answer.ttlMs };
  if (answer.state === "pending") return { state: "pending", ttlMs: answer.ttlMs };
  return { state: answer.state };
}

function bell(list: string[]): StoreEvents {
  return {
    granted: (owner) => list.push(`granted ${owner}`),
    check: (owner) => list.push(`check ${owner}`),
    checkAll: () => list.push("all"),
  };
}

/** Messages on the way have arrived: the server has sent them before it answered, on another connection. */
async function flush(store: RedisStore): Promise<void> {
  await store.inspect("nobody");
  await new Promise((resolve) => setTimeout(resolve, 1));
}

function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}
