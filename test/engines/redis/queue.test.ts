/** The queue in Lua against the reference in memory: random verbs on a real server whose clock is moved in step. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startRedis, type RedisServer } from "../../../servers/redis.ts";
import { systemClock } from "../../../src/engine/clock.ts";
import type { Answer, Ask, StoreEvents } from "../../../src/engine/lease-store.ts";
import { MemorySpace, type MemoryRequest, type Moment } from "../../../src/engines/memory/space.ts";
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
    await play([`name-${round}`], random(SEED + round), 60, 1);
  });
}

for (let round = 0; round < 60; round++) {
  test(`seed ${SEED + round}: the same, with up to 40 verbs in one turn of the event loop`, async () => {
    const names = ["a", "b", "c"].map((letter) => `many-${round}-${letter}`);
    await play(names, random(SEED + round), 30, 40);
  });
}

/** A verb that is under way, and what the reference says to it. */
interface Played {
  readonly what: string;
  readonly ours: Promise<unknown>;
  readonly theirs: unknown;
}

/** One turn after the other; the verbs of one turn go to one store, which carries them out in order. */
async function play(names: string[], draw: (below: number) => number, turns: number, most: number): Promise<void> {
  const table = new Table(names, draw);
  await server.setClockOffset(0);
  for (let turn = 0; turn < turns; turn++) {
    rung.length = 0;
    table.heard.length = 0;
    const store = stores[draw(stores.length)];
    assert.ok(store !== undefined);
    const verbs = draw(2) === 0 ? 1 : 1 + draw(most);
    await table.look(store);
    if (draw(12) === 0) await table.passTime();
    const played = Array.from({ length: verbs }, () => table.play(store));
    table.story.push(...played.map(({ what }) => what), "-- end of the turn");
    const context = `turn ${turn}\n${table.story.join("\n")}`;
    const ours = await Promise.all(played.map((each) => each.ours));
    for (const [n, { what, theirs }] of played.entries()) assert.deepEqual(ours[n], theirs, `${what}\n${context}`);
    for (const name of names) await table.compare(store, name, context);
    await Promise.all(stores.map((each) => flush(each)));
    assert.deepEqual([...new Set(rung)].sort(), [...new Set(table.heard)].sort(), context);
  }
}

interface Holder {
  /** Undefined for a place without an owner. */
  readonly ask: Ask | undefined;
  /** Its token with us, and with the reference. */
  readonly ours: bigint;
  readonly theirs: bigint;
}

/** The reference, and the verbs on it and on a store alike. */
class Table {
  readonly heard: string[] = [];
  readonly story: string[] = [];
  readonly #names: readonly string[];
  readonly #draw: (below: number) => number;
  readonly #space = new MemorySpace();
  readonly #asks: Ask[] = [];
  /** Who holds at the beginning of a turn, with our token, and who stands there. To look later would drop the expired. */
  readonly #holders = new Map<string, Holder[]>();
  readonly #present = new Set<Ask>();
  #nowMs = 1_000_000;
  #offsetMs = 0;

  constructor(names: readonly string[], draw: (below: number) => number) {
    this.#names = names;
    this.#draw = draw;
  }

  /** Before a turn. */
  async look(store: RedisStore): Promise<void> {
    this.#present.clear();
    for (const name of this.#names) {
      const tokens = (await store.inspect(name)).map(({ token }) => token);
      const reference = this.#list(name).map(({ ask, events, token }, n) => ({
        ask: events === undefined ? undefined : ask,
        ours: tokens[n] ?? 1n,
        theirs: token,
      }));
      for (const { ask } of reference) if (ask !== undefined) this.#present.add(ask);
      this.#holders.set(
        name,
        reference.flatMap(({ ask, ours, theirs }) => (theirs === undefined ? [] : [{ ask, ours, theirs }])),
      );
    }
  }

  async passTime(): Promise<void> {
    this.story.push("time passes");
    this.#nowMs += STEP_MS;
    this.#offsetMs += STEP_MS;
    await server.setClockOffset(this.#offsetMs);
  }

  /** Starts one verb and does not wait for it. */
  play(store: RedisStore): Played {
    const name = this.#names[this.#draw(this.#names.length)] ?? "";
    const ask = this.#asks[this.#draw(Math.max(this.#asks.length, 1))];
    const verb = this.#draw(11);
    if (verb < 4 || ask === undefined) {
      const fresh = randomAsk(name, this.#asks.length, this.#draw);
      if (fresh.wait) this.#asks.push(fresh);
      return this.#request(store, fresh);
    }
    if (verb < 6) return this.#renew(store, ask);
    if (verb === 6 && this.#present.has(ask)) return this.#request(store, ask);
    if (verb <= 7) return this.#leave(store, ask, false);
    if (verb === 10) return this.#evict(store, name);
    return this.#leave(store, this.#holders.get(name)?.find((holder) => holder.ask !== undefined)?.ask ?? ask, true);
  }

  /** After a turn. */
  async compare(store: RedisStore, name: string, context: string): Promise<void> {
    const list = await store.inspect(name);
    const reference = this.#list(name);
    assert.deepEqual(
      list.map(({ mode, limit, token, client }) => [mode, limit, token !== null, client.clientId]),
      reference.map(({ mode, limit, token, ask: { client } }) => [mode, limit, token !== undefined, client.clientId]),
      context,
    );
    const tokens = list.flatMap(({ token }) => (token === null ? [] : [token]));
    for (const [n, token] of tokens.entries()) assert.ok(n === 0 || token > (tokens[n - 1] ?? 0n), context);
    for (const [n, entry] of list.entries()) {
      const left = Math.max(reference[n]?.expiresAtMs ?? 0, reference[n]?.holdUntilMs ?? 0) - this.#nowMs;
      assert.ok(
        Math.abs((entry.remainingMs ?? 0) - left) < HALF_MS - 100,
        `${context}\n${entry.remainingMs} ≠ ${left}`,
      );
    }
  }

  #request(store: RedisStore, ask: Ask): Played {
    const { owner, mode, limit, wait, steal, minHoldMs } = ask;
    return {
      what: `request ${ask.name} ${owner} ${mode} ${limit}${wait ? "" : " no wait"}${steal ? " steal" : ""} hold ${minHoldMs}`,
      ours: store.request(ask).then(plain),
      theirs: plain(this.#space.request(ask, bell(this.heard), this.#moment())),
    };
  }

  #renew(store: RedisStore, ask: Ask): Played {
    return {
      what: `renew ${ask.name} ${ask.owner}`,
      ours: store.renew([ask]).then((answers) => answers.map(plain)),
      theirs: [plain(this.#space.renew(ask.name, ask.owner, ask.ttlMs, ask.pendingTtlMs, this.#moment()))],
    };
  }

  #leave(store: RedisStore, { name, owner }: Ask, keepHold: boolean): Played {
    this.#space.leave(name, owner, keepHold, this.#moment());
    return {
      what: `${keepHold ? "release" : "withdraw"} ${name} ${owner}`,
      ours: keepHold ? store.release(name, owner) : store.withdraw(name, owner),
      theirs: undefined,
    };
  }

  #evict(store: RedisStore, name: string): Played {
    const holders = this.#holders.get(name) ?? [];
    const index = this.#draw(Math.max(holders.length, 1));
    const { ours, theirs } = holders[index] ?? { ours: 1n, theirs: 1n };
    return {
      what: `evict ${name}, holder ${index}`,
      ours: store.evict(name, ours),
      theirs: this.#space.evict(name, theirs, this.#moment()),
    };
  }

  #list(name: string): readonly MemoryRequest[] {
    return this.#space.list(name, this.#moment());
  }

  #moment(): Moment {
    return { monoMs: this.#nowMs, wallMs: this.#nowMs };
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
