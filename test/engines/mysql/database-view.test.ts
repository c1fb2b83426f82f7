/** What an administrator of the database sees: queries, indexes, rows that stay, connections, locks that wait. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { plainPacket } from "../../../src/engines/mysql/packet.ts";
import { packet, type Statement, type Values } from "../../../src/engines/mysql/packet.ts";
import { eventually, nowMs, pause, within } from "../../../src/testing/expect.ts";
import { ask, database, locksOn, sessionsOf, storeOn } from "./database.ts";

const server = database();

async function counter(name: string): Promise<number> {
  return Number((await (await server()).query(`SHOW GLOBAL STATUS LIKE '${name}'`))[0]?.["Value"]);
}

test("while 100 wait, the server is asked less than once a second for each", async (t) => {
  const holder = await locksOn(t, await server());
  const waiters = await Promise.all([locksOn(t, await server()), locksOn(t, await server())]);
  const lock = await holder.acquire("hundred");
  const waiting = waiters.flatMap((locks) => Array.from({ length: 50 }, () => locks.acquire("hundred")));
  await eventually(30_000, "100 wait", async () => (await holder.query({ prefix: "hundred" })).pending.length === 100);
  const [from, questions] = [nowMs(), await counter("Questions")];
  await pause(5_000);
  const perSecond = (((await counter("Questions")) - questions) / (nowMs() - from)) * 1000;
  t.diagnostic(`${perSecond.toFixed(1)} statements a second for 100 waiters`);
  assert.ok(perSecond < 100, `${perSecond} statements a second`);
  const sleeping = (await sessionsOf(await server())).filter((session) => session.doing.includes("GET_LOCK"));
  assert.ok(sleeping.length <= 8, `${sleeping.length} connections sleep on bells: at most 4 for each engine`);
  await lock.release();
  const lockWaits = await counter("Innodb_row_lock_waits");
  const served = Promise.all(waiting.map(async (each) => (await each).release()));
  const started = nowMs();
  await within(60_000, "all waiters", served);
  t.diagnostic(`${((nowMs() - started) / 100).toFixed(1)} ms a hand-off between two engines`);
  t.diagnostic(`${(await counter("Innodb_row_lock_waits")) - lockWaits} waits for row locks in 100 hand-offs`);
});

test("waiters for many names share few connections", async (t) => {
  const holder = await locksOn(t, await server());
  const waiter = await locksOn(t, await server(), { waitingConnections: 3 });
  const names = Array.from({ length: 30 }, (_, index) => `many ${index}`);
  const held = await Promise.all(names.map((name) => holder.acquire(name)));
  const before = (await sessionsOf(await server())).length;
  const waiting = names.map((name) => waiter.acquire(name));
  await eventually(20_000, "all wait", async () => (await holder.query({ prefix: "many" })).pending.length === 30);
  await pause(300);
  const sleeping = (await sessionsOf(await server())).filter((session) => session.doing.includes("GET_LOCK"));
  assert.equal(sleeping.length, 3);
  assert.ok((await sessionsOf(await server())).length <= before + 3 + 3, "desks and sleepers");
  const questions = await counter("Questions");
  await pause(3_000);
  const perSecond = ((await counter("Questions")) - questions) / 3;
  assert.ok(perSecond < 30, `${perSecond} statements a second for 30 waiters, most of them without a bell`);
  const from = nowMs();
  await Promise.all(held.map((lock) => lock.release()));
  await within(10_000, "all waiters", Promise.all(waiting.map(async (each) => (await each).release())));
  assert.ok(nowMs() - from < 8_000);
});

test("incident 21: 10,000 names leave no rows, nor do requests that died", async (t) => {
  const { store } = await storeOn(t, await server(), { rememberMs: 300 });
  const count = async (): Promise<number> =>
    Number((await (await server()).query("SELECT COUNT(*) AS n FROM holdfast_names"))[0]?.["n"]);
  const [dead, deadWaiter] = [
    ask("dead", { ttlMs: 300, pendingTtlMs: 300 }),
    ask("dead", { ttlMs: 300, pendingTtlMs: 300 }),
  ];
  await store.request(dead); // both die: nobody ever asks again
  await store.request(deadWaiter);
  const work = async (worker: number): Promise<void> => {
    for (let index = 0; index < 1_250; index++) {
      const each = ask(`name ${worker} ${index}`);
      const held = await store.request(each);
      assert.equal(held.state, "held");
      await store.release(each.name, each.owner, held.state === "held" ? held.token : 0n);
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, worker) => work(worker)));
  const living = ask("living");
  await store.request(living);
  await eventually(40_000, "only the living name is left", async () => (await count()) === 1);
  const rows = await (await server()).query("SELECT COUNT(*) AS n FROM holdfast_requests");
  assert.equal(Number(rows[0]?.["n"]), 0);
  assert.equal((await store.inspect("living")).length, 1);
});

test("endings are forgotten", async (t) => {
  const { store } = await storeOn(t, await server(), { rememberMs: 200 });
  const victim = ask("ended", { ttlMs: 500, pendingTtlMs: 500 });
  await store.request(victim);
  await store.request(ask("ended", { steal: true, ttlMs: 500 }));
  const [told] = await store.renew([{ name: "ended", owner: victim.owner, ttlMs: 500, pendingTtlMs: 500 }]);
  assert.deepEqual(told, { state: "gone", reason: "stolen" });
  await eventually(10_000, "no ending is left", async () => {
    const [row] = await (await server()).query("SELECT COUNT(*) AS n FROM holdfast_endings");
    return Number(row?.["n"]) === 0;
  });
});

test("every statement finds its rows by an index, among 2,000 names and a queue of 300", async (t) => {
  const { store } = await storeOn(t, await server());
  const fill = async (worker: number): Promise<void> => {
    for (let index = 0; index < 250; index++) await store.request(ask(`explain ${worker} ${index}`));
  };
  await Promise.all(Array.from({ length: 8 }, (_, worker) => fill(worker)));
  await Promise.all(Array.from({ length: 300 }, () => store.request(ask("explain queue"))));
  const owner = ask("explain queue");
  await store.request(owner);
  await (await server()).query("ANALYZE TABLE holdfast_names, holdfast_requests");
  const bytes = (text: string): Buffer => Buffer.from(text);
  const values: Values = {
    name: bytes("explain queue"),
    names: [bytes("explain 1 1"), bytes("explain 2 2"), bytes("explain queue")],
    owner: bytes(owner.owner),
    owners: [bytes(owner.owner), bytes("another")],
    shared: 0,
    most: 1,
    ttl_us: 1,
    pending_us: 1,
    min_hold_us: 0,
    kept_for_us: 0,
    keep: 1,
    stays: 1,
    steal: 0,
    token: 1,
    bell: "bell",
    client: bytes("{}"),
    seconds: 1,
    from: bytes("a"),
    until: bytes("b"),
    page: 10,
    after: bytes("a"),
    remember_us: 1,
    few: 10,
  };
  const statements: Statement[] = [
    ...([
      "put-down",
      "begin",
      "clear",
      "unfold",
      "steal",
      "admit",
      "join",
      "depart",
      "evict",
      "grant",
      "touch",
    ] as const),
    ...(["pass", "close-empty", "tell-passed", "heard"] as const),
    ...(["close", "tell", "answer", "renew", "inside", "granted", "inspect", "names", "endings"] as const),
    ...(["sweep-look", "sweep-names", "sweep-endings"] as const),
  ];
  const scans: string[] = [];
  await (
    await server()
  ).query("SET @now = 1, @upto = 5, @base = 1, @granted = 1, @admitted = 1, @aside = 1, @first = 1, @alive = 1");
  for (const name of statements) {
    for (const sql of packet([name], values)
      .sql.split(";")
      .map((each) => each.trim())) {
      // What is assigned to variables is explained as a plain SELECT of the same expressions.
      const explainable = sql.startsWith("SET ") ? `SELECT ${sql.slice(4).replaceAll(/@\w+ = /g, "")}` : sql;
      if (!/^(SELECT|UPDATE|DELETE|INSERT)/.test(explainable)) continue;
      const plan = await (await server()).query(`EXPLAIN ${plainPacket(explainable).sql}`);
      for (const step of plan) {
        const table = String(step["table"]);
        if (!/^(holdfast_|waiting|mine|other)/.test(table)) continue;
        if (step["type"] === "ALL" && Number(step["rows"]) > 20)
          scans.push(`${name}: ${table} in ${explainable.slice(0, 80)}`);
      }
    }
  }
  assert.deepEqual(scans, []);
});

test("a hundred names locked and released side by side: no lock waits, no deadlocks", async (t) => {
  const managers = await Promise.all([locksOn(t, await server()), locksOn(t, await server())]);
  const before = [await counter("Innodb_row_lock_waits"), await counter("Innodb_deadlocks")];
  await Promise.all(
    managers.flatMap((locks, manager) =>
      Array.from({ length: 50 }, async (_, index) => {
        for (let round = 0; round < 3; round++) await locks.request(`side ${manager} ${index}`, () => {});
      }),
    ),
  );
  const after = [await counter("Innodb_row_lock_waits"), await counter("Innodb_deadlocks")];
  assert.deepEqual(after, before);
});
