/** A private MariaDB for the tests of one file, and connections that are closed after each test. */
import { after, type TestContext } from "node:test";
import { startMariadb, type MariadbServer, type MariadbServerOptions } from "../../../servers/mariadb.ts";
import { systemClock } from "../../../src/engine/clock.ts";
import { newOwner } from "../../../src/engine/name.ts";
import type { Ask, LeaseStore, StoreEvents } from "../../../src/engine/lease-store.ts";
import { mysql, mysqlStore, type MysqlOptions } from "../../../src/engines/mysql/index.ts";
import { connect, type LeaseOptions, type LockManager } from "../../../src/index.ts";

/** Starts the server once for the file, stops it after the last test. */
export function database(options: MariadbServerOptions = {}): () => Promise<MariadbServer> {
  let started: Promise<MariadbServer> | undefined;
  after(async () => (await started?.catch(() => undefined))?.stop());
  return () => (started ??= startMariadb(options));
}

/** Locks on `server`, closed after the test. */
export async function locksOn(
  t: TestContext,
  server: MariadbServer,
  options: MysqlOptions = {},
  defaults: LeaseOptions = {},
): Promise<LockManager> {
  const where = options.pool ?? options.url ?? options.connection;
  const locks = await connect(mysql(where === undefined ? { ...options, url: server.url } : options), defaults);
  t.after(() => locks.close());
  return locks;
}

export interface OpenStore {
  readonly store: LeaseStore;
  readonly granted: Map<string, bigint>;
  readonly checked: string[];
}

/** A store without the engine above it: verbs at will, hints collected. */
export async function storeOn(t: TestContext, server: MariadbServer, options: MysqlOptions = {}): Promise<OpenStore> {
  const store = mysqlStore({ url: server.url, ...options });
  const granted = new Map<string, bigint>();
  const checked: string[] = [];
  const events: StoreEvents = {
    granted: (owner, token) => granted.set(owner, token),
    check: (owner) => checked.push(owner),
    checkAll: () => {},
  };
  await store.open(events);
  t.after(() => store.close());
  return { store, granted, checked };
}

export function ask(name: string, changes: Partial<Ask> = {}): Ask {
  return {
    name,
    owner: newOwner(systemClock),
    mode: "exclusive",
    limit: 1,
    ttlMs: 30_000,
    pendingTtlMs: 10_000,
    minHoldMs: 0,
    wait: true,
    steal: false,
    client: { clientId: "test", host: "here", pid: process.pid },
    ...changes,
  };
}

/** Connections of the user `holdfast`, with what they are doing. */
export async function sessionsOf(server: MariadbServer): Promise<{ id: number; doing: string }[]> {
  const rows = await server.query(
    "SELECT id, COALESCE(info, '') AS doing FROM information_schema.processlist WHERE user = 'holdfast'",
  );
  return rows.map((row) => ({ id: Number(row["id"]), doing: String(row["doing"]) }));
}
