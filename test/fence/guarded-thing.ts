/** A text that is kept somewhere behind a guard, reachable from any process: what locks are for. */
import { DatabaseSync } from "node:sqlite";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import { createClient } from "redis";
import {
  fencingHeaders,
  redisFence,
  sqlFence,
  StaleTokenError,
  zookeeperFence,
  type ZooKeeperEntry,
} from "../../src/fence/index.ts";
import { ZooKeeper } from "../../src/zookeeper/index.ts";

export const KINDS = ["redis", "mariadb", "postgres", "sqlite", "zookeeper", "http"] as const;
export type Kind = (typeof KINDS)[number];

export interface GuardedThing {
  /** Before the first read. */
  enter(token: bigint): Promise<void>;
  write(token: bigint, value: string): Promise<void>;
  read(): Promise<string | undefined>;
  close(): Promise<void>;
}

const NAME = "account";

/** `where`: a URL, an address, or the path of a database. */
export function openThing(kind: Kind, where: string): Promise<GuardedThing> {
  const open = { redis, mariadb, postgres, sqlite, zookeeper, http }[kind];
  return open(where);
}

async function redis(url: string): Promise<GuardedThing> {
  const client = createClient({ url });
  client.on("error", () => {});
  await client.connect();
  const fence = redisFence(client);
  return {
    enter: (token) => fence.enter(NAME, token),
    write: async (token, value) => void (await fence.write(NAME, token, ["SET", `{${NAME}}`, value])),
    read: async () => (await client.get(`{${NAME}}`)) ?? undefined,
    close: async () => client.destroy(),
  };
}

async function mariadb(url: string): Promise<GuardedThing> {
  const connection = await createConnection(url);
  connection.on("error", () => {});
  const fence = sqlFence("mariadb");
  await connection.query(fence.schema);
  await connection.query("CREATE TABLE IF NOT EXISTS things (name VARCHAR(99) PRIMARY KEY, value TEXT)");
  const inTransaction = async (token: bigint, work: () => Promise<unknown>): Promise<void> => {
    await connection.beginTransaction();
    try {
      await fence.enter(async (sql, values) => (await connection.query(sql, values))[0], NAME, token);
      await work();
      await connection.commit();
    } catch (error) {
      await connection.rollback();
      throw error;
    }
  };
  return {
    enter: (token) => inTransaction(token, async () => {}),
    write: (token, value) =>
      inTransaction(token, () => connection.query("REPLACE INTO things VALUES (?, ?)", [NAME, value])),
    read: async () => {
      const [rows] = await connection.query("SELECT value FROM things WHERE name = ?", [NAME]);
      return (rows as { value: string }[])[0]?.value;
    },
    close: async () => connection.destroy(),
  };
}

async function postgres(url: string): Promise<GuardedThing> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  const fence = sqlFence("postgres");
  await client.query(fence.schema);
  await client.query("CREATE TABLE IF NOT EXISTS things (name text PRIMARY KEY, value text)");
  const inTransaction = async (token: bigint, work: () => Promise<unknown>): Promise<void> => {
    await client.query("BEGIN");
    try {
      await fence.enter(async (sql, values) => (await client.query(sql, values)).rows, NAME, token);
      await work();
      await client.query("COMMIT");
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    }
  };
  const upsert = "INSERT INTO things VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value";
  return {
    enter: (token) => inTransaction(token, async () => {}),
    write: (token, value) => inTransaction(token, () => client.query(upsert, [NAME, value])),
    read: async () => (await client.query("SELECT value FROM things WHERE name = $1", [NAME])).rows[0]?.value,
    close: () => client.end(),
  };
}

async function sqlite(path: string): Promise<GuardedThing> {
  const database = new DatabaseSync(path, { timeout: 10_000 });
  const fence = sqlFence("sqlite");
  database.exec(fence.schema);
  database.exec("CREATE TABLE IF NOT EXISTS things (name TEXT PRIMARY KEY, value TEXT)");
  const inTransaction = async (token: bigint, work: () => void): Promise<void> => {
    database.exec("BEGIN IMMEDIATE");
    try {
      fence.enterSync((sql, values) => database.prepare(sql).all(...values), NAME, token);
      work();
      database.exec("COMMIT");
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  };
  return {
    enter: (token) => inTransaction(token, () => {}),
    write: (token, value) =>
      inTransaction(token, () => void database.prepare("REPLACE INTO things VALUES (?, ?)").run(NAME, value)),
    read: async () =>
      database.prepare("SELECT value FROM things WHERE name = ?").get(NAME)?.["value"] as string | undefined,
    close: async () => database.close(),
  };
}

async function zookeeper(address: string): Promise<GuardedThing> {
  let client = await ZooKeeper.connect(address);
  await client.create(`/${NAME}`).catch(() => {});
  // As a holder uses it: the entry that was made before the first read serves for all writes.
  let entered: Promise<ZooKeeperEntry> | undefined;
  const entry = (token: bigint): Promise<ZooKeeperEntry> => (entered ??= zookeeperFence(client).enter(NAME, token));
  const write = async (token: bigint, data: string): Promise<void> =>
    void (await (await entry(token)).multi([{ kind: "setData", path: `/${NAME}`, data }]));
  return {
    enter: async (token) => void (await entry(token)),
    write: async (token, value) => {
      try {
        await write(token, value);
      } catch (error) {
        if (error instanceof StaleTokenError) throw error;
        // A pause ends the session, too. A stubborn holder opens another one and tries again.
        client = await ZooKeeper.connect(address);
        entered = undefined;
        await write(token, value);
      }
    },
    read: async () => (await client.getData(`/${NAME}`)).data.toString(),
    close: () => client.close(),
  };
}

async function http(url: string): Promise<GuardedThing> {
  const send = async (token: bigint | undefined, method: string, body?: string): Promise<string> => {
    const headers = token === undefined ? {} : fencingHeaders(token);
    const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
    if (response.status === 412 && token !== undefined) throw new StaleTokenError(NAME, token);
    return await response.text();
  };
  return {
    enter: async (token) => void (await send(token, "GET")),
    write: async (token, value) => void (await send(token, "PUT", value)),
    read: () => send(undefined, "GET"),
    close: async () => {},
  };
}
