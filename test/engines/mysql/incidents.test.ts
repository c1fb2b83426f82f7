/** How locks on MySQL have failed in public; the numbers are those of docs/incidents.md. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { createConnection, createPool } from "mysql2/promise";
import { startFaultProxy } from "../../../servers/fault-proxy.ts";
import { eventually, nowMs, pause, rejectsWith, stillPending, within } from "../../../src/testing/expect.ts";
import { ask, database, locksOn, sessionsOf, storeOn } from "./database.ts";

const server = database();

test("incident 38: a command that timed out may have locked all the same: asking again under the same owner finds it", async (t) => {
  const proxy = await startFaultProxy((await server()).port);
  t.after(() => proxy.close());
  const url = (await server()).url.replace(/:\d+\//, `:${proxy.port}/`);
  const { store } = await storeOn(t, await server(), { url, commandTimeoutMs: 500 });
  const first = ask("38");
  proxy.set({ toClient: "drop" });
  await rejectsWith("ENGINE_UNAVAILABLE", store.request(first));
  proxy.set({ toClient: "pass" });
  assert.equal((await store.inspect("38")).length, 1, "it was applied");
  const again = await store.request(first);
  assert.equal(again.state, "held");
  assert.equal((await store.inspect("38")).length, 1);
  await store.withdraw("38", first.owner);
  assert.equal((await store.inspect("38")).length, 0);
});

test("incident 38: an acquire whose replies are lost leaves nothing behind", async (t) => {
  const proxy = await startFaultProxy((await server()).port);
  t.after(() => proxy.close());
  const url = (await server()).url.replace(/:\d+\//, `:${proxy.port}/`);
  const locks = await locksOn(t, await server(), { url, commandTimeoutMs: 400 });
  proxy.set({ toClient: "drop" });
  await rejectsWith("LOCK_TIMEOUT", locks.acquire("38 lost", { waitMs: 300 }));
  proxy.set({ toClient: "pass" });
  await eventually(10_000, "the request is withdrawn", async () => {
    const { held, pending } = await locks.query({ prefix: "38 lost" });
    return held.length + pending.length === 0;
  });
});

test("incident 39: idle connections that the server closes cost nothing: the lock is a row", async (t) => {
  await (await server()).query("SET GLOBAL wait_timeout = 1");
  t.after(async () => void (await (await server()).query("SET GLOBAL wait_timeout = 28800")));
  const locks = await locksOn(t, await server(), {}, { ttlMs: 6_000 });
  const other = await locksOn(t, await server());
  const lock = await locks.acquire("39");
  const sessions = await sessionsOf(await server());
  await pause(1_600);
  assert.deepEqual(await sessionsOf(await server()), sessions, "a short wait_timeout does not close our connections");
  for (const { id } of await sessionsOf(await server())) await (await server()).query(`KILL ${id}`);
  assert.equal(await other.tryAcquire("39", { ttlMs: 1_000 }).catch(() => null), null);
  await pause(2_000);
  assert.ok(lock.isHeld(), "renewed over a new connection");
  await lock.release();
  await (await other.acquire("39", { waitMs: 5_000 })).release();
});

test("incident 40: names differ by case, accents, trailing spaces and length, and never collide", async (t) => {
  const locks = await locksOn(t, await server());
  const long = "x".repeat(511);
  const names = [
    "a",
    "A",
    "\u00e1",
    "a ",
    "a  ",
    " a",
    "a\0",
    "a\0b",
    "a%",
    "a_",
    "a'b",
    'a"b',
    "a\\",
    "a\u0301",
    `${long}1`,
    `${long}2`,
  ];
  const held = await Promise.all(names.map((name) => locks.acquire(`40 ${name}`.slice(-512), { waitMs: 10_000 })));
  assert.equal(new Set(held.map((lock) => lock.name)).size, names.length);
  assert.ok(held.every((lock) => lock.isHeld()));
  const found = await locks.query();
  const expected = held.map((lock) => lock.name).sort();
  assert.deepEqual(
    found.held
      .map((each) => each.name)
      .filter((name) => expected.includes(name))
      .sort(),
    expected,
  );
  await Promise.all(held.map((lock) => lock.release()));
});

test("incident 41: where named locks do not work, waiters look again, and the traits say so", async (t) => {
  const locks = await locksOn(t, await server(), { waitingConnections: 0 });
  const holder = await locksOn(t, await server());
  const lock = await holder.acquire("41");
  const waiting = locks.acquire("41");
  await stillPending(500, "the waiter", waiting);
  const before = nowMs();
  await lock.release();
  await (await within(5_000, "the waiter", waiting)).release();
  assert.ok(nowMs() - before < 3_000, "long before its keep-alive");
});

test("incident 42: a connection that broke is thrown away and poisons nothing", async (t) => {
  const proxy = await startFaultProxy((await server()).port);
  t.after(() => proxy.close());
  const url = (await server()).url.replace(/:\d+\//, `:${proxy.port}/`);
  const locks = await locksOn(t, await server(), { url });
  for (let round = 0; round < 5; round++) {
    const asking = locks.acquire(`42 ${round}`, { waitMs: 10_000 });
    proxy.reset();
    await (await within(15_000, "an acquire over a cut connection", asking)).release();
  }
  // Connections that end in the middle of the handshake or of a reply: an error of ours, and none afterwards.
  proxy.set({ cutToClientAfter: 300 });
  proxy.reset();
  await rejectsWith("ENGINE_UNAVAILABLE", within(25_000, "an acquire", locks.acquire("42 middle", { waitMs: 20_000 })));
  proxy.set({ cutToClientAfter: Infinity });
  await (await within(25_000, "an acquire after replies in pieces", locks.acquire("42 middle"))).release();
});

test("incident 43: time is read after the wait for the row: who waited for the row still gets a whole lease", async (t) => {
  const { store } = await storeOn(t, await server());
  const first = ask("43", { ttlMs: 1_000, pendingTtlMs: 1_000 });
  await store.request(first);
  const dba = await createConnection((await server()).url);
  t.after(() => dba.end());
  await dba.query("START TRANSACTION");
  await dba.query("SELECT * FROM holdfast_names WHERE name = '43' FOR UPDATE");
  const second = ask("43", { ttlMs: 3_000, pendingTtlMs: 3_000 });
  const asking = store.request(second);
  await pause(1_500); // the first lease ends while the second request waits for the row
  await dba.query("COMMIT");
  assert.equal((await asking).state, "held", "the lease that ended meanwhile counts as ended");
  const [entry] = await store.inspect("43");
  assert.ok((entry?.remainingMs ?? 0) > 2_000, `${entry?.remainingMs} ms are left of 3,000`);
});

test("incident 44: a transaction that failed in the middle is rolled back before the next command", async (t) => {
  const { store } = await storeOn(t, await server(), { connections: 1, commandTimeoutMs: 10_000 });
  const first = ask("44");
  await store.request(first);
  const waiter = ask("44");
  assert.equal((await store.request(waiter)).state, "pending");
  const dba = await createConnection((await server()).url);
  t.after(() => dba.end());
  await dba.query("START TRANSACTION");
  await dba.query("SELECT * FROM holdfast_requests WHERE name = '44' FOR UPDATE");
  // The release locks the name, then waits in vain for the rows: the lock wait ends in the middle of its transaction.
  const releasing = store.release("44", first.owner, 0n);
  await pause(2_600);
  await dba.query("ROLLBACK");
  await releasing;
  const answers = await store.renew([{ name: "44", owner: waiter.owner, ttlMs: 1_000, pendingTtlMs: 1_000 }]);
  assert.equal(answers[0]?.state, "held");
  await store.release("44", waiter.owner, 0n);
  const open = await (await server()).query("SELECT COUNT(*) AS open FROM information_schema.innodb_trx");
  assert.equal(Number(open[0]?.["open"]), 0);
});

test("incident 45: releasing after another owner has the lock is quiet and leaves that one alone", async (t) => {
  const { store } = await storeOn(t, await server());
  const first = ask("45", { ttlMs: 100, pendingTtlMs: 100 });
  const held = await store.request(first);
  assert.ok(held.state === "held");
  await pause(200);
  const second = ask("45");
  assert.equal((await store.request(second)).state, "held");
  await store.release("45", first.owner, held.token);
  await store.withdraw("45", first.owner);
  const [entry] = await store.inspect("45");
  assert.ok(entry !== undefined && entry.token !== null && entry.token > held.token);
  await store.release("45", second.owner, entry.token);
});

test("incident 47: the first acquires of many connections, and of several processes, make the tables once and all succeed", async (t) => {
  const running = await server();
  for (const round of [1, 2]) {
    await running.query("DROP DATABASE IF EXISTS fresh; CREATE DATABASE fresh; GRANT ALL ON fresh.* TO holdfast@'%'");
    const url = running.urlFor("holdfast", "secret", "fresh");
    const programs = Array.from({ length: 3 }, () => startProgram(t, url));
    await Promise.all(programs.map((program) => program.line()));
    for (const program of programs) program.go();
    const managers = await Promise.all(Array.from({ length: 4 }, () => locksOn(t, running, { url })));
    await Promise.all(managers.map((each) => each.acquire("47", { waitMs: 20_000 }).then((lock) => lock.release())));
    const tokens = await Promise.all(programs.map((program) => within(20_000, "a process", program.line())));
    assert.equal(
      new Set(tokens.map((token) => BigInt(token))).size,
      programs.length,
      `round ${round}: ${tokens.join()}`,
    );
    const rows = await running.query("SELECT version FROM fresh.holdfast_schema");
    assert.deepEqual(
      rows.map((row) => row["version"]),
      [1],
    );
    await Promise.all(managers.map((each) => each.close()));
  }
});

/** A process that says that it is there, connects when told, takes a lock and says its token. */
function startProgram(t: TestContext, url: string): { line(): Promise<string>; go(): void } {
  const child = spawn(process.execPath, [...process.execArgv, join(import.meta.dirname, "first-use-program.ts"), url], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill());
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    line: async () => String((await lines.next()).value),
    go: () => void child.stdin.end("go\n"),
  };
}

test("incident 55: when a lease has run out, exactly one of many takes over", async (t) => {
  const stores = await Promise.all(Array.from({ length: 4 }, async () => (await storeOn(t, await server())).store));
  for (let round = 0; round < 5; round++) {
    const name = `55 ${round}`;
    await stores[0]?.request(ask(name, { ttlMs: 100, pendingTtlMs: 100 }));
    await pause(150);
    const answers = await Promise.all(
      stores.flatMap((store) =>
        [ask(name, { wait: false }), ask(name, { wait: false })].map((each) => store.request(each)),
      ),
    );
    assert.equal(answers.filter((answer) => answer.state === "held").length, 1);
  }
});

test("incident 61: the bell hangs before the request stands: no release is missed, however soon it comes", async (t) => {
  const holder = await locksOn(t, await server());
  const waiter = await locksOn(t, await server());
  let slowest = 0;
  for (let round = 0; round < 60; round++) {
    const lock = await holder.acquire("61");
    const waiting = waiter.acquire("61", { ttlMs: 30_000 });
    await pause(round % 6);
    const from = nowMs();
    await lock.release();
    await (await within(9_000, "the waiter", waiting)).release();
    slowest = Math.max(slowest, nowMs() - from);
  }
  // A missed bell would cost a keep-alive period: 3.3 s.
  assert.ok(slowest < 3_000, `the slowest hand-off took ${slowest} ms`);
});

test("incident 62: a renewal that is not committed yet still counts against who would take over", async (t) => {
  const { store } = await storeOn(t, await server(), { commandTimeoutMs: 10_000 });
  const holder = ask("62", { ttlMs: 1_000, pendingTtlMs: 1_000 });
  await store.request(holder);
  const waiter = ask("62", { ttlMs: 30_000, pendingTtlMs: 10_000 });
  assert.equal((await store.request(waiter)).state, "pending"); // now both stand in rows
  // A renewal by hand, as slow as it gets.
  const slow = await createConnection((await server()).url);
  t.after(() => slow.end());
  await slow.query("START TRANSACTION");
  await slow.query("UPDATE holdfast_requests SET expires_us = expires_us + 60000000 WHERE owner = ?", [holder.owner]);
  await pause(1_300);
  const asking = store.renew([{ name: "62", owner: waiter.owner, ttlMs: 30_000, pendingTtlMs: 10_000 }]);
  await stillPending(400, "the waiter's keep-alive", asking);
  await slow.query("COMMIT");
  assert.equal((await asking)[0]?.state, "pending", "the holder was renewed in time");
});

test("incident 64: a minimum hold survives release and crash", async (t) => {
  const { store } = await storeOn(t, await server());
  const released = ask("64", { minHoldMs: 1_500 });
  const held = await store.request(released);
  assert.ok(held.state === "held");
  await store.release("64", released.owner, held.token);
  assert.equal((await store.request(ask("64", { wait: false }))).state, "busy");
  const crashed = ask("64 crash", { minHoldMs: 1_500, ttlMs: 200, pendingTtlMs: 200 });
  await store.request(crashed);
  await pause(400);
  assert.equal((await store.request(ask("64 crash", { wait: false }))).state, "busy");
  const next = ask("64 crash");
  const pending = await store.request(next);
  assert.ok(pending.state === "pending" && pending.recheckMs !== null && pending.recheckMs <= 1_500);
  await pause(1_400);
  assert.equal((await store.request(ask("64", { wait: false }))).state, "held");
  const [answer] = await store.renew([{ name: "64 crash", owner: next.owner, ttlMs: 1_000, pendingTtlMs: 1_000 }]);
  assert.equal(answer?.state, "held");
});

test("an existing pool is neither used up nor closed", async (t) => {
  const pool = createPool({ uri: (await server()).url, connectionLimit: 1 });
  t.after(() => pool.end());
  const busy = await pool.getConnection();
  const locks = await locksOn(t, await server(), { pool });
  await (await locks.acquire("pool")).release();
  await locks.close();
  await busy.query("SELECT 1");
  busy.release();
  await pool.query("SELECT 1");
});
