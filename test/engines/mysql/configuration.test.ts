/** Wrong settings and wrong servers are named clearly; right ones in every form work. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { createPool } from "mysql2";
import { startMariadb } from "../../../servers/mariadb.ts";
import { mysql, schemaSql } from "../../../src/engines/mysql/index.ts";
import { connect, ConfigError, HoldfastError } from "../../../src/index.ts";
import { rejection } from "../../../src/testing/expect.ts";
import { database, locksOn } from "./database.ts";

const server = database();

async function refused(url: string): Promise<HoldfastError> {
  const error = await rejection(connect(url));
  assert.ok(error instanceof HoldfastError, String(error));
  assert.ok(!inspect(error, { depth: 5 }).includes("top-secret"), "the error tells the password");
  return error;
}

/** A database of its own, and a user with these privileges on its tables. */
async function databaseFor(name: string, privileges: Record<string, string>): Promise<string> {
  const running = await server();
  await running.query(`CREATE DATABASE ${name}; CREATE USER ${name}@'%' IDENTIFIED BY 'top-secret'`);
  for (const [what, privilege] of Object.entries(privileges)) {
    await running.query(`GRANT ${privilege} ON ${name}.${what} TO ${name}@'%'`);
  }
  return running.urlFor(name, "top-secret", name);
}

const LEAST = {
  holdfast_names: "SELECT, INSERT, UPDATE, DELETE",
  holdfast_requests: "SELECT, INSERT, UPDATE, DELETE",
  holdfast_endings: "SELECT, INSERT, UPDATE, DELETE",
  holdfast_schema: "SELECT",
};

async function makeTables(name: string): Promise<void> {
  await (await server()).query(`USE ${name}; ${await schemaSql()}`);
  await (await server()).query("USE holdfast");
}

test("the least privileges suffice, and one less is named", async (t) => {
  const running = await server();
  await running.query("CREATE DATABASE least");
  await makeTables("least");
  await running.query("DROP USER IF EXISTS least@'%'; CREATE USER least@'%' IDENTIFIED BY 'top-secret'");
  for (const [table, privilege] of Object.entries(LEAST)) {
    await running.query(`GRANT ${privilege} ON least.${table} TO least@'%'`);
  }
  const url = running.urlFor("least", "top-secret", "least");
  const locks = await locksOn(t, running, { url: `${url}?migrate=false` });
  const lock = await locks.acquire("a");
  const waiting = locks.acquire("a");
  await locks.request("a", { steal: true }, () => {});
  await (await waiting).release();
  await lock.release();
  const kept = await locks.acquire("b", { minHoldMs: 100 });
  assert.equal(await locks.evict("b", kept.token), true);
  for (const privilege of ["INSERT", "UPDATE", "DELETE"]) {
    await running.query(`REVOKE ${privilege} ON least.holdfast_requests FROM least@'%'`);
    const error = await refused(url);
    assert.equal(error.code, "CONFIG");
    assert.match(error.message, /1142.*privilege.*holdfast sql mysql/);
    await running.query(`GRANT ${privilege} ON least.holdfast_requests TO least@'%'`);
  }
});

test("no tables, and not allowed to make them", async () => {
  const url = await databaseFor("poor", { "*": "SELECT, INSERT, UPDATE, DELETE" });
  const error = await refused(url);
  assert.equal(error.code, "CONFIG");
  assert.match(error.message, /may not create them.*holdfast sql mysql/);
  assert.match((await refused(`${url}?migrate=false`)).message, /tables of Holdfast are missing/);
});

test("tables of another version", async () => {
  const url = await databaseFor("future", { "*": "ALL" });
  await makeTables("future");
  await (await server()).query("UPDATE future.holdfast_schema SET version = 99");
  const error = await refused(url);
  assert.equal(error.code, "CONFIG");
  assert.match(error.message, /of version 99, this release needs 1/);
});

test("schemaSql prints what the engine makes, and may be repeated", async (t) => {
  const url = await databaseFor("printed", { "*": "ALL" });
  await makeTables("printed");
  await makeTables("printed");
  await (await (await locksOn(t, await server(), { url })).acquire("a")).release();
  const made = await (await server()).query("SHOW CREATE TABLE printed.holdfast_names");
  await (await server()).query("DROP DATABASE printed; CREATE DATABASE printed");
  await (await (await locksOn(t, await server(), { url })).acquire("a")).release();
  assert.deepEqual(await (await server()).query("SHOW CREATE TABLE printed.holdfast_names"), made);
});

test("a read-only server, at the start and later", async (t) => {
  const running = await server();
  const locks = await locksOn(t, running);
  await running.query("SET GLOBAL read_only = 1");
  t.after(async () => void (await running.query("SET GLOBAL read_only = 0")));
  const error = await refused(running.url);
  assert.equal(error.code, "CONFIG");
  assert.match(error.message, /read-only \(a replica\?\)/);
  const later = await rejection(locks.acquire("read-only", { waitMs: 5_000 }));
  assert.ok(later instanceof HoldfastError && later.code === "ENGINE_UNAVAILABLE", String(later));
  await running.query("SET GLOBAL read_only = 0");
  await (await locks.acquire("read-only", { waitMs: 5_000 })).release();
});

test("wrong password, no such database, nobody there", async () => {
  const running = await server();
  assert.match((await refused(running.urlFor("holdfast", "top-secret"))).message, /user or password is wrong/);
  const nowhere = await refused(running.urlFor("holdfast_x", "top-secret", "nowhere"));
  assert.equal(nowhere.code, "CONFIG");
  const missing = await refused(running.url.replace(/holdfast$/, "nowhere"));
  assert.equal(missing.code, "CONFIG");
  const gone = await refused("mysql://holdfast:top-secret@127.0.0.1:1/holdfast");
  assert.equal(gone.code, "ENGINE_UNAVAILABLE");
});

test("URLs are checked before any I/O, and never repeated", async () => {
  for (const url of [
    "mysql://user:top-secret@host",
    "mysql://user:top-secret@host:port/db",
    "mysql://user:top-secret@host/db?ssl=true",
    "mysql://user:top-secret@host/db?tls=maybe",
    "mysql://user:top-secret@host/db?migrate=perhaps",
  ]) {
    assert.equal((await refused(url)).code, "CONFIG", url);
  }
});

test("options are checked", () => {
  const url = "mysql://user@host/db";
  const wrong = [
    {},
    { url, connection: {} },
    { pool: {} },
    { url, connections: 0 },
    { url, waitingConnections: -1 },
    { url, commandTimeoutMs: 1 },
    { url, rememberMs: Number.NaN },
  ];
  for (const options of wrong) assert.throws(() => mysql(options), ConfigError, inspect(options));
});

test("mariadb:, a socket, connection settings and a callback pool", async (t) => {
  const running = await server();
  const socket = `mariadb://holdfast:secret@localhost/holdfast?socket=${encodeURIComponent(running.socketPath)}`;
  const connection = {
    host: "127.0.0.1",
    port: running.port,
    user: "holdfast",
    password: "secret",
    database: "holdfast",
  };
  const pool = createPool({ ...connection, timezone: "+05:00", multipleStatements: false, typeCast: false });
  t.after(() => pool.promise().end());
  const managers = [await connect(socket), await connect(mysql({ connection })), await connect(mysql({ pool }))];
  for (const locks of managers) {
    const lock = await locks.acquire("forms");
    assert.equal((await locks.query({ prefix: "forms" })).held[0]?.token, lock.token);
    await lock.release();
    await locks.close();
  }
});

test("TLS is verified; insecure only when asked for", async (t) => {
  const secure = await startMariadb({ tls: true });
  t.after(() => secure.stop());
  const folder = await mkdtemp(join(tmpdir(), "holdfast-ca-"));
  t.after(() => rm(folder, { recursive: true }));
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, secure.certificate?.authority ?? "");
  const plain = await refused(secure.url);
  assert.equal(plain.code, "CONFIG");
  assert.match(plain.message, /TLS/);
  assert.equal((await refused(`${secure.url}?tls=on`)).code, "ENGINE_UNAVAILABLE", "the authority is not known");
  const warnings: string[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning.message);
  process.on("warning", onWarning);
  t.after(() => process.removeListener("warning", onWarning));
  for (const query of [`?ca=${encodeURIComponent(ca)}`, "?tls=insecure"]) {
    const locks = await locksOn(t, secure, { url: `${secure.url}${query}` });
    await (await locks.acquire("tls")).release();
    await locks.close();
  }
  assert.equal(warnings.filter((each) => each.includes("not verified")).length, 1);
});

test("a server that may forget is noticed", async (t) => {
  const running = await server();
  await running.query("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
  t.after(async () => void (await running.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1")));
  const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
  const locks = await locksOn(t, running);
  assert.match((await warned).message, /may forget locks/);
  assert.equal(locks.traits.survivesRestart, false);
});

test("a server's own ways (ANSI quotes, no backslashes, autocommit off) change nothing", async (t) => {
  const odd = await startMariadb({
    settings: [
      "sql-mode=ANSI,NO_BACKSLASH_ESCAPES,ORACLE,SIMULTANEOUS_ASSIGNMENT,PIPES_AS_CONCAT",
      "autocommit=0",
      "transaction-isolation=SERIALIZABLE",
      "character-set-server=latin1",
      "lower-case-table-names=1",
    ],
  });
  t.after(() => odd.stop());
  const locks = await locksOn(t, odd);
  const name = "it's \\ \" ü";
  const lock = await locks.acquire(name);
  const waiting = locks.acquire(name);
  assert.equal(await locks.tryAcquire(name), null);
  await lock.release();
  await (await waiting).release();
  assert.deepEqual(await locks.query(), { held: [], pending: [] });
});
