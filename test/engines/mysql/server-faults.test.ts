/** The server is killed, frozen, short of connections; connections are killed; transactions collide. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createConnection } from "mysql2/promise";
import { EngineUnavailableError } from "../../../src/index.ts";
import { eventually, nowMs, pause, rejection, rejectsWith, within } from "../../../src/testing/expect.ts";
import { ask, database, locksOn, sessionsOf, storeOn } from "./database.ts";

const server = database();

test("a held lock survives a kill of the server, and goes on being renewed", async (t) => {
  const locks = await locksOn(t, await server(), {}, { ttlMs: 6_000 });
  const lock = await locks.acquire("survivor");
  const waiting = locks.acquire("survivor");
  await pause(100);
  await (await server()).restart();
  const other = await locksOn(t, await server());
  assert.equal(await other.tryAcquire("survivor"), null);
  await pause(3_000);
  assert.ok(lock.isHeld());
  await lock.renew();
  await lock.release();
  await (await within(10_000, "the waiter over the restart", waiting)).release();
});

test("a killed holder connection frees nothing; a killed waiter connection misses nothing", async (t) => {
  const holder = await locksOn(t, await server());
  const waiter = await locksOn(t, await server());
  const lock = await holder.acquire("killed");
  const waiting = waiter.acquire("killed");
  await eventually(5_000, "the waiter sleeps on the bell", async () => {
    return (await sessionsOf(await server())).some((session) => session.doing.includes("GET_LOCK"));
  });
  for (const { id } of await sessionsOf(await server())) await (await server()).query(`KILL ${id}`);
  await pause(300);
  assert.ok(lock.isHeld());
  assert.equal((await waiter.query({ prefix: "killed" })).pending.length, 1);
  const from = nowMs();
  await lock.release();
  await (await within(10_000, "the waiter", waiting)).release();
  assert.ok(nowMs() - from < 5_000);
});

test("a frozen server: every command settles in time, and the loss is told by the deadline", async (t) => {
  const locks = await locksOn(t, await server(), { commandTimeoutMs: 500 }, { ttlMs: 2_000 });
  const lock = await locks.acquire("frozen");
  (await server()).freeze();
  t.after(async () => (await server()).thaw());
  const from = nowMs();
  const error = await within(5_000, "an acquire", rejection(locks.acquire("other", { waitMs: 60_000 })));
  assert.ok(error instanceof EngineUnavailableError, String(error));
  await within(6_000, "the loss", new Promise((resolve) => lock.signal.addEventListener("abort", resolve)));
  assert.ok(nowMs() - from < 5_000);
  assert.equal(lock.isHeld(), false);
  (await server()).thaw();
  await (await within(10_000, "after the thaw", locks.acquire("frozen"))).release();
});

test("deadlocks and lock waits are tried again", async (t) => {
  const { store } = await storeOn(t, await server(), { commandTimeoutMs: 10_000 });
  const [first, second] = [ask("deadlock"), ask("deadlock")];
  await store.request(first);
  await store.request(second);
  // A foreign transaction takes a row and then the name: the other way round than a release does.
  const dba = await createConnection((await server()).url);
  t.after(() => dba.end());
  const before = await deadlocks();
  for (let round = 0; round < 3; round++) {
    await dba.query("START TRANSACTION");
    await dba.query("UPDATE holdfast_requests SET since_us = since_us + 1 WHERE name = 'deadlock'");
    const renewing = store.request(second);
    await pause(100);
    // Heavier in changes, so the server undoes ours.
    await dba.query("UPDATE holdfast_names SET since_us = since_us + 1").catch(() => {});
    await dba.query("COMMIT");
    assert.equal((await within(9_000, "a request in a deadlock", renewing)).state, "pending");
  }
  assert.ok((await deadlocks()) > before, "the test made no deadlock");
  await store.withdraw("deadlock", second.owner);
  await store.withdraw("deadlock", first.owner);
});

async function deadlocks(): Promise<number> {
  const [row] = await (await server()).query("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'");
  return Number(row?.["Value"]);
}

test("a row that a stranger keeps locked: a clear error in time, and nothing stays open", async (t) => {
  const { store } = await storeOn(t, await server(), { commandTimeoutMs: 3_000 });
  await store.request(ask("kept"));
  const dba = await createConnection((await server()).url);
  t.after(() => dba.end());
  await dba.query("START TRANSACTION");
  await dba.query("SELECT * FROM holdfast_names WHERE name = 'kept' FOR UPDATE");
  const from = nowMs();
  await rejectsWith("ENGINE_UNAVAILABLE", store.request(ask("kept")));
  assert.ok(nowMs() - from < 8_000);
  await dba.query("ROLLBACK");
  assert.equal((await store.request(ask("kept"))).state, "pending");
});

test("a server without connections to spare: waiters do without sleeping ones", async (t) => {
  const holder = await locksOn(t, await server());
  const waiter = await locksOn(t, await server());
  const lock = await holder.acquire("crowded");
  const used = (await (await server()).query("SHOW STATUS LIKE 'Threads_connected'"))[0]?.["Value"];
  const [limit] = await (await server()).query("SELECT @@max_connections AS most");
  await (await server()).query(`SET GLOBAL max_connections = ${Math.max(10, Number(used))}`);
  t.after(async () => void (await (await server()).query(`SET GLOBAL max_connections = ${Number(limit?.["most"])}`)));
  const waiting = waiter.acquire("crowded");
  await pause(500);
  await lock.release();
  await (await within(9_000, "the waiter", waiting)).release();
});

test("locks do not keep the process alive, waiting does, and closing ends every connection", async (t) => {
  const locks = await locksOn(t, await server());
  const before = new Set((await sessionsOf(await server())).map((session) => session.id));
  const more = await locksOn(t, await server());
  await (await more.acquire("closing")).release();
  await locks.close();
  await more.close();
  await eventually(5_000, "no connection is left", async () => {
    const now = await sessionsOf(await server());
    return now.every((session) => before.has(session.id));
  });
});
