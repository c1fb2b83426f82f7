/** The Lua scripts of one node, against a real Redis. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startRedis, type RedisServer } from "../../../servers/redis.ts";
import {
  ACQUIRE,
  ADMIT,
  ANNOUNCE,
  EVICT,
  INSPECT,
  lockKey,
  NODE_KEY,
  NOTE,
  noteKeys,
  RAISE,
  RELEASE,
  RENEW,
  waitKey,
} from "../../../src/engines/redlock/scripts.ts";
import type { Script } from "../../../src/redis/script.ts";

const RUN = "run-1";
const TTL = "60000";
const REMEMBER = "3600000";
const CLIENT = '{"clientId":"c","host":"h","pid":1}';
let server: RedisServer;

before(async () => {
  server = await startRedis({ clock: true });
});
after(async () => await server.stop());
beforeEach(async () => {
  await server.setClockOffset(0);
  await server.command("FLUSHALL");
  await run(ADMIT, [NODE_KEY], [RUN, TTL, "3", "0"]);
});

async function run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown[]> {
  return (await server.command("EVAL", script.source, keys.length, ...keys, ...args)) as unknown[];
}

interface Asking {
  name?: string;
  run?: string;
  ttl?: string;
  leaseMs?: number;
  proposal?: number;
  rememberMs?: string;
}

/** Verdict and what follows the time. */
async function acquire(owner: string, asking: Asking = {}): Promise<unknown[]> {
  const { name = "a", run: runId = RUN, ttl = TTL, leaseMs = 1_000, proposal = 0, rememberMs = REMEMBER } = asking;
  const args = [runId, ttl, owner, leaseMs, proposal, rememberMs, CLIENT];
  const [verdict, , , ...rest] = await run(ACQUIRE, [lockKey(name), NODE_KEY], args);
  return [verdict, ...rest];
}

async function raise(owner: string, token: number, runId = RUN): Promise<unknown> {
  return (await run(RAISE, [lockKey("a"), NODE_KEY], [runId, TTL, owner, token, REMEMBER]))[0];
}

async function renew(owner: string, token: number | string, leaseMs = 1_000, runId = RUN): Promise<unknown[]> {
  const [verdict, , , ...answers] = await run(
    RENEW,
    [NODE_KEY, lockKey("a")],
    [runId, TTL, REMEMBER, owner, leaseMs, token, CLIENT],
  );
  return [verdict, ...answers];
}

async function release(owner: string, ring = "0"): Promise<unknown> {
  return (await run(RELEASE, [lockKey("a"), waitKey("a")], [owner, REMEMBER, "bell:", "a", ring]))[0];
}

async function high(): Promise<number> {
  return Number(await server.command("HGET", NODE_KEY, "high"));
}

test("acquire: one vote at a time, and the counter goes up by one, or to the proposal", async () => {
  assert.deepEqual(await acquire("x.1"), ["vote", 1]);
  const [verdict, counter, leftMs, bell] = await acquire("y.1");
  assert.deepEqual([verdict, counter, bell], ["busy", 1, "x"]);
  assert.ok(Number(leftMs) > 500 && Number(leftMs) <= 1_000);
  assert.deepEqual(await acquire("x.1", { proposal: 1_000 }), ["vote", 1_000]);
  assert.equal(await release("x.1"), 1);
  assert.deepEqual(await acquire("y.1", { proposal: 7 }), ["vote", 1_001]);
});

test("acquire: what stands as the highest counter is above all, by a second at most, and is not written for every vote", async () => {
  await acquire("x.1", { proposal: 5_000 });
  const first = await high();
  assert.ok(first >= 5_000 && first <= 1_005_000);
  await acquire("x.1", { name: "b", proposal: first });
  assert.equal(await high(), first);
  await acquire("x.1", { name: "c", proposal: first + 1 });
  assert.ok((await high()) > first);
});

test("acquire: the other's lease ends by itself, on the node's clock", async () => {
  await acquire("x.1", { leaseMs: 60_000 });
  assert.equal((await acquire("y.1"))[0], "busy");
  await server.setClockOffset(60_001);
  assert.deepEqual(await acquire("y.1"), ["vote", 2]);
});

test("acquire: an incarnation that is not admitted, or under other terms, has no vote; with the guard off it has", async () => {
  assert.deepEqual(await acquire("x.1", { run: "run-2" }), ["foreign"]);
  assert.deepEqual(await acquire("x.1", { ttl: "30000" }), ["foreign"]);
  await server.command("DEL", NODE_KEY);
  assert.deepEqual(await acquire("x.1"), ["foreign"]);
  assert.deepEqual(await acquire("x.1", { run: "" }), ["vote", 1]);
});

test("acquire: a proposal more than an hour ahead does not drag the counter along", async () => {
  const micros = Date.now() * 1_000;
  assert.deepEqual(await acquire("x.1", { proposal: micros + 7_200_000_000 }), ["vote", 1]);
  assert.deepEqual(await acquire("x.1", { proposal: micros + 1_800_000_000 }), ["vote", micros + 1_800_000_000]);
});

test("acquire: microseconds of today keep every digit", async () => {
  const proposal = 1_796_048_267_808_001;
  const later = 4 * 365 * 86_400_000;
  await server.setClockOffset(later);
  assert.deepEqual(await acquire("x.1", { proposal }), ["vote", proposal]);
  assert.deepEqual(await acquire("x.1"), ["vote", proposal + 1]);
  const highest = String(await server.command("HGET", NODE_KEY, "high"));
  assert.match(highest, /^\d{16}$/);
  assert.ok(Number(highest) > proposal && Number(highest) <= proposal + 1_000_001);
});

test("raise: only the owner's own running lock, and only from below", async () => {
  await acquire("x.1");
  assert.equal(await raise("y.1", 9), "refused");
  assert.equal(await raise("x.1", 9, "run-2"), "refused");
  assert.equal(await raise("x.1", 9), "accepted");
  assert.equal(await raise("x.1", 9), "refused");
  assert.equal(await raise("x.1", 8), "refused");
  assert.equal(await raise("x.1", 9_000_000), "accepted");
  assert.ok((await high()) >= 9_000_000);
  await server.setClockOffset(1_001);
  assert.equal(await raise("x.1", 9_000_001), "refused");
  assert.deepEqual(await acquire("y.1"), ["vote", 9_000_001]);
});

test("renew: prolongs an own lock and never makes it shorter", async () => {
  await acquire("x.1", { leaseMs: 60_000 });
  assert.deepEqual(await renew("x.1", 1, 100), ["ok", "held"]);
  const [, , leftMs] = await acquire("y.1");
  assert.ok(Number(leftMs) > 50_000);
  assert.deepEqual(await renew("x.1", 1, 90_000), ["ok", "held"]);
  assert.ok(Number((await acquire("y.1"))[2]) > 80_000);
  assert.deepEqual(await renew("x.1", 1, 1_000, "run-2"), ["foreign"]);
});

test("renew: a lock that is missing is set again as a vote with the token or more, if it is asked for", async () => {
  assert.deepEqual(await renew("x.1", "0"), ["ok", "missing"]);
  assert.deepEqual(await renew("x.1", 50), ["ok", "joined"]);
  assert.deepEqual(await renew("x.1", 50), ["ok", "held"]);
  await release("x.1");
  assert.deepEqual(await acquire("y.1"), ["vote", 51]);
  assert.deepEqual(await renew("x.1", 50), ["ok", "lost"]);
  await release("y.1");
  assert.deepEqual(await renew("x.1", 9_000_000), ["ok", "joined"]);
  assert.ok((await high()) >= 9_000_000);
});

test("release: only the owner's own lock, twice is harmless, and the counter stays", async () => {
  await acquire("x.1", { proposal: 41 });
  assert.equal(await release("y.1"), 0);
  assert.equal((await acquire("y.1"))[0], "busy");
  assert.equal(await release("x.1"), 1);
  assert.equal(await release("x.1"), 0);
  assert.deepEqual(await acquire("y.1"), ["vote", 42]);
});

test("announce: tells what is in the way, and a release rings who waits, each process once", async () => {
  const announce = async (bell: string, lastingMs: string): Promise<unknown[]> =>
    (await run(ANNOUNCE, [lockKey("a"), waitKey("a")], [bell, lastingMs, "{}", 2])).slice(3);
  assert.deepEqual(await announce("y", "5000"), [0, ""]);
  await acquire("x.1");
  const [leftMs, bell] = await announce("y", "5000");
  assert.ok(Number(leftMs) > 500 && bell === "x");
  await announce("z", "5000");
  await announce("over", "5000"); // there is no room for a third
  await announce("z", "0");
  const heard = await server.command(
    "EVAL",
    RELEASE.source,
    2,
    lockKey("a"),
    waitKey("a"),
    "x.1",
    REMEMBER,
    "b:",
    "a",
    "1",
  );
  assert.equal((heard as unknown[])[0], 1);
  assert.deepEqual(await server.command("HKEYS", waitKey("a")), ["y"]);
  await announce("brief", "20");
  await pause(30);
  await announce("late", "5000");
  assert.deepEqual(((await server.command("HKEYS", waitKey("a"))) as string[]).sort(), ["late", "y"]);
});

test("evict: by token, and the victim learns why", async () => {
  const evict = async (token: number): Promise<unknown> =>
    (await run(EVICT, [lockKey("a"), waitKey("a")], [token, REMEMBER, "bell:", "a"]))[0];
  await acquire("x.1", { proposal: 5 });
  assert.equal(await evict(4), 0);
  assert.equal(await evict(5), 1);
  assert.equal(await evict(5), 0);
  assert.deepEqual(await renew("x.1", 5), ["ok", "evicted"]);
  assert.deepEqual(await acquire("y.1"), ["vote", 6]);
  assert.deepEqual(await renew("x.1", 5), ["ok", "evicted"]);
});

test("evict: whoever was evicted before the last one, and has not heard of it, learns it as well", async () => {
  const evict = async (token: number): Promise<unknown> =>
    (await run(EVICT, [lockKey("a"), waitKey("a")], [token, REMEMBER, "bell:", "a"]))[0];
  for (let turn = 0; turn < 5; turn++) {
    const [, token] = await acquire(`x.${turn}`);
    assert.equal(await evict(Number(token)), 1);
  }
  for (let turn = 0; turn < 5; turn++) assert.deepEqual(await renew(`x.${turn}`, 1), ["ok", "evicted"]);
  assert.deepEqual(await renew("x", 50), ["ok", "joined"], "no owner is a part of another");
});

test("inspect: the record and who waits", async () => {
  await acquire("x.1", { proposal: 5 });
  await run(ANNOUNCE, [lockKey("a"), waitKey("a")], ["y", "5000", '{"waiting":[]}', 9]);
  const reply = await run(INSPECT, [lockKey("a"), waitKey("a")], []);
  assert.match(String(reply[3]), /^5\|\d+\|\d+\|x\.1\|\|\{"clientId"/);
  assert.equal(reply[4], "y");
  assert.match(String(reply[5]), /^\d+\|\{"waiting":\[\]\}$/);
});

test("admit: raises every counter to the floor, and happens once for each incarnation", async () => {
  await acquire("x.1", { proposal: 5, leaseMs: 10 });
  assert.equal((await run(ADMIT, [NODE_KEY], [RUN, TTL, "3", "9000000"]))[0], 0);
  assert.equal((await run(ADMIT, [NODE_KEY], ["run-2", TTL, "3", "9000000"]))[0], 1);
  await pause(20);
  assert.deepEqual(await acquire("x.1", { run: "run-2" }), ["vote", 9_000_001]);
  assert.deepEqual(await acquire("x.1", { run: "run-2", name: "b" }), ["vote", 9_000_001]);
});

test("incident 21: a name that was forgotten starts above what it had, and the floor moves only now and then", async () => {
  const rememberMs = "60000";
  await acquire("x.1", { proposal: 500, rememberMs, leaseMs: 100 });
  await acquire("x.1", { name: "b", rememberMs, leaseMs: 100 });
  await server.setClockOffset(200_000);
  assert.equal(await server.command("EXISTS", lockKey("a"), lockKey("b")), 0);
  const [, counter] = await acquire("y.1", { name: "b", rememberMs });
  assert.ok(Number(counter) > 500);
  // A clock that was set back moves the floor as well: what is set now expires by the new time.
  await server.setClockOffset(-200_000);
  assert.ok(Number((await acquire("y.1", { name: "c", rememberMs }))[1]) > Number(counter));
});

test("note: the first begins the wait, whoever comes later finds it running, or over", async () => {
  const note = async (): Promise<number> => Number((await run(NOTE, noteKeys("run-2"), ["1000", "60000"]))[3]);
  assert.equal(await note(), 1_000);
  await pause(20);
  const leftMs = await note();
  assert.ok(leftMs > 0 && leftMs < 1_000);
  await server.setClockOffset(1_001);
  assert.equal(await note(), 0);
});
