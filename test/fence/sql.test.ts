/** The SQL fence in transactions of PostgreSQL, MariaDB and SQLite. */
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { createPool, type Pool as MysqlPool, type PoolConnection } from "mysql2/promise";
import { Pool as PostgresPool, type PoolClient } from "pg";
import { startMariadb, type MariadbServer } from "../../servers/mariadb.ts";
import { startPostgres, type PostgresServer } from "../../servers/postgres.ts";
import { temporaryDirectory } from "../../servers/server-process.ts";
import { sqlFence, StaleTokenError, type SqlFence, type SqlQuery } from "../../src/fence/index.ts";
import { guardCases, type Guarded } from "./guard-cases.ts";

let postgresServer: PostgresServer;
let mariadbServer: MariadbServer;
let postgres: PostgresPool;
let mysql: MysqlPool;
let sqlite: DatabaseSync;
const directory = await temporaryDirectory("fence");

before(async () => {
  [postgresServer, mariadbServer] = await Promise.all([startPostgres(), startMariadb()]);
  postgres = new PostgresPool({ connectionString: postgresServer.url });
  postgres.on("error", () => {});
  mysql = createPool(mariadbServer.url);
  sqlite = new DatabaseSync(`${directory.path}/app.db`);
  await postgres.query("CREATE TABLE things (name text PRIMARY KEY, value text)");
  await postgres.query(sqlFence("postgres").schema);
  await postgres.query(sqlFence("postgres").schema);
  await mysql.query("CREATE TABLE things (name VARBINARY(512) PRIMARY KEY, value TEXT CHARACTER SET utf8mb4)");
  await mysql.query(sqlFence("mariadb").schema);
  sqlite.exec("CREATE TABLE things (name TEXT PRIMARY KEY, value TEXT)");
  sqlite.exec(sqlFence("sqlite").schema);
});

after(async () => {
  await postgres.end();
  await mysql.end();
  sqlite.close();
  await Promise.all([postgresServer.stop(), mariadbServer.stop()]);
  await rm(directory.path, { recursive: true });
});

async function inPostgres(
  work: (client: PoolClient, query: SqlQuery) => Promise<void>,
  begin = "BEGIN",
): Promise<void> {
  const client = await postgres.connect();
  try {
    await client.query(begin);
    await work(client, async (sql, values) => (await client.query(sql, values)).rows);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

async function inMysql(work: (connection: PoolConnection, query: SqlQuery) => Promise<void>): Promise<void> {
  const connection = await mysql.getConnection();
  try {
    await connection.beginTransaction();
    await work(connection, async (sql, values) => (await connection.query(sql, values))[0]);
    await connection.commit();
  } catch (error) {
    await connection.rollback();
    throw error;
  } finally {
    connection.release();
  }
}

const rowsOfSqlite: SqlQuery = (sql, values) => sqlite.prepare(sql).all(...values);

function inSqlite(work: () => void): void {
  sqlite.exec("BEGIN IMMEDIATE");
  try {
    work();
    sqlite.exec("COMMIT");
  } catch (error) {
    sqlite.exec("ROLLBACK");
    throw error;
  }
}

function postgresGuard(fence: SqlFence, begin?: string): Guarded {
  return {
    enter: (name, fencing) => inPostgres((_, query) => fence.enter(query, name, fencing), begin),
    write: (name, fencing, value) =>
      inPostgres(async (client, query) => {
        await fence.enter(query, name, fencing);
        const upsert = "INSERT INTO things VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value";
        await client.query(upsert, [name, value]);
      }, begin),
    read: async (name) => (await postgres.query("SELECT value FROM things WHERE name = $1", [name])).rows[0]?.value,
  };
}

function mysqlGuard(fence: SqlFence): Guarded {
  return {
    enter: (name, fencing) => inMysql((_, query) => fence.enter(query, name, fencing)),
    write: (name, fencing, value) =>
      inMysql(async (connection, query) => {
        await fence.enter(query, name, fencing);
        await connection.query("REPLACE INTO things VALUES (?, ?)", [name, value]);
      }),
    read: async (name) => {
      const [rows] = await mysql.query("SELECT value FROM things WHERE name = ?", [name]);
      return (rows as { value: string }[])[0]?.value;
    },
  };
}

function sqliteGuard(fence: SqlFence): Guarded {
  return {
    enter: async (name, fencing) => inSqlite(() => fence.enterSync(rowsOfSqlite, name, fencing)),
    write: async (name, fencing, value) =>
      inSqlite(() => {
        fence.enterSync(rowsOfSqlite, name, fencing);
        sqlite.prepare("REPLACE INTO things VALUES (?, ?)").run(name, value);
      }),
    read: async (name) => {
      const row = sqlite.prepare("SELECT value FROM things WHERE name = ?").get(name);
      return row?.["value"] as string | undefined;
    },
  };
}

guardCases(
  "PostgreSQL",
  () => postgresGuard(sqlFence("postgres")),
  (epoch) => postgresGuard(sqlFence("postgres", { epoch })),
);
guardCases(
  "MariaDB",
  () => mysqlGuard(sqlFence("mariadb")),
  (epoch) => mysqlGuard(sqlFence("mysql", { epoch })),
);
guardCases(
  "SQLite",
  () => sqliteGuard(sqlFence("sqlite")),
  (epoch) => sqliteGuard(sqlFence("sqlite", { epoch })),
);

/** Holder 1 enters and stops before its write; holder 2 comes. Whoever is second waits for the first one's commit. */
async function overlaps(
  guard: (work: (query: SqlQuery) => Promise<void>) => Promise<void>,
  fence: SqlFence,
  name: string,
) {
  const entered = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  let later = false;
  const first = guard(async (query) => {
    await fence.enter(query, name, 1n);
    entered.resolve();
    await goOn.promise;
    assert.equal(later, false, "two are inside");
  });
  await entered.promise;
  const second = guard(async (query) => {
    await fence.enter(query, name, 2n);
    later = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  goOn.resolve();
  await Promise.all([first, second]);
  await assert.rejects(
    guard((query) => fence.enter(query, name, 1n)),
    StaleTokenError,
  );
}

test("PostgreSQL, MariaDB: from enter to commit nobody else can enter", async () => {
  await overlaps((work) => inPostgres((_, query) => work(query)), sqlFence("postgres"), "overlap");
  await overlaps((work) => inMysql((_, query) => work(query)), sqlFence("mariadb"), "overlap");
});

test("PostgreSQL: a serialisable transaction that met a later holder fails, and the next try is refused", async () => {
  const fence = sqlFence("postgres");
  const begin = "BEGIN ISOLATION LEVEL SERIALIZABLE";
  await postgresGuard(fence).enter("serial", 1n);
  const met = inPostgres(async (client, query) => {
    await client.query("SELECT 1 FROM things");
    await postgresGuard(fence).enter("serial", 2n);
    await fence.enter(query, "serial", 1n);
  }, begin);
  await assert.rejects(met, { code: "40001" });
  await assert.rejects(postgresGuard(fence, begin).enter("serial", 1n), StaleTokenError);
});

test("MariaDB: an old snapshot does not hide a later holder", async () => {
  const fence = sqlFence("mariadb");
  await mysqlGuard(fence).enter("snapshot", 1n);
  const stale = inMysql(async (connection, query) => {
    await connection.query("SELECT * FROM holdfast_fence"); // the snapshot is taken here: a read before enter
    await mysqlGuard(fence).enter("snapshot", 2n);
    await fence.enter(query, "snapshot", 1n);
  });
  await assert.rejects(stale, (error) => {
    // Newer MariaDB refuses by itself to write to a row that has changed since the snapshot.
    return error instanceof StaleTokenError || (error as { errno?: number }).errno === 1020;
  });
});

test("a table of another name; wrong names, dialects and queries are refused", async () => {
  const fence = sqlFence("sqlite", { table: "own_fence" });
  assert.match(fence.schema, /own_fence/);
  sqlite.exec(fence.schema);
  inSqlite(() => fence.enterSync(rowsOfSqlite, "x", 5n));
  assert.throws(() => inSqlite(() => fence.enterSync(rowsOfSqlite, "x", 4n)), StaleTokenError);
  await assert.rejects(async () => await fence.enter(rowsOfSqlite, "x", 4n), StaleTokenError, "asynchronous, too");
  assert.throws(() => sqlFence("sqlite", { table: "a; DROP TABLE b" }), { code: "CONFIG" });
  assert.throws(() => sqlFence("oracle" as never), { code: "CONFIG" });
  assert.throws(() => fence.enterSync(rowsOfSqlite, "", 4n), { code: "CONFIG" });
  assert.throws(() => fence.enterSync(async () => [], "x", 4n), { code: "CONFIG" });
  assert.throws(() => fence.enterSync(() => undefined, "x", 4n), { code: "CONFIG" });
});
