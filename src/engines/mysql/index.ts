/** The mysql engine: locks in InnoDB tables of MySQL 8.0+ or MariaDB 10.6+. See docs/engines/mysql.md. */
import { systemClock, type Clock } from "../../engine/clock.ts";
import type { Engine } from "../../engine/engine.ts";
import { ConfigError } from "../../engine/errors.ts";
import { LeaseEngine } from "../../engine/lease-engine.ts";
import type { LeaseStore } from "../../engine/lease-store.ts";
import { poolSettings, urlOptions, type ConnectionSettings, type PoolLike } from "./client.ts";
import { MysqlStore } from "./store.ts";

export { schemaSql } from "./schema.ts";
export type { ConnectionSettings, PoolLike } from "./client.ts";

export interface MysqlOptions {
  /** A pool of `mysql2` or `mysql2/promise`: our own few connections are made from its settings; it is never used up and never closed. */
  pool?: PoolLike | undefined;
  /** `mysql://user:password@host:3306/database`, instead of a pool. */
  url?: string | undefined;
  /** Settings of a `mysql2` connection, instead of a pool or a URL. */
  connection?: ConnectionSettings | undefined;
  /** Makes the tables where they are missing. Default: true. `schemaSql()` and `holdfast sql mysql` print them. */
  migrate?: boolean | undefined;
  /** Connections for locking and releasing, opened as they are needed; one more is kept for renewals. Default: 4; 1 … 32. */
  connections?: number | undefined;
  /** Connections that may sleep until another process releases; waiters beyond it look again at intervals. Default: 4; 0 … 64. */
  waitingConnections?: number | undefined;
  /** How long one command may take, waiting in line included, ms. Default: 5,000; 100 … 60,000. */
  commandTimeoutMs?: number | undefined;
  /** How long a name is remembered after its last use, ms: a server clock set back by less repeats no token. Default: an hour; 100 … 7 days. */
  rememberMs?: number | undefined;
  /** Default: this machine's clocks. */
  clock?: Clock | undefined;
}

const HOUR_MS = 3_600_000;

/**
 * Locks in a MySQL or MariaDB database. Does no I/O yet. Errors: `ConfigError`.
 *
 * Cost: one round trip and one commit to lock, the same to unlock.
 */
export function mysql(options: MysqlOptions): Engine {
  return new LeaseEngine(mysqlStore(options), options.clock ?? systemClock);
}

/** The store under the engine. @internal */
export function mysqlStore(options: MysqlOptions): LeaseStore {
  const { pool, url, connection = {} } = options;
  if ([pool, url, options.connection].filter((each) => each !== undefined).length !== 1) {
    throw new ConfigError("mysql() takes one of pool, url and connection");
  }
  const fromUrl = url === undefined ? undefined : urlOptions(url);
  if (pool !== undefined) poolSettings(pool); // refuses what is no pool
  return new MysqlStore({
    clock: options.clock ?? systemClock,
    // Asked anew for every connection: a pool's password may be changed while it is in use.
    settings: () => (pool === undefined ? (fromUrl?.settings ?? connection) : poolSettings(pool)),
    migrate: options.migrate ?? fromUrl?.migrate ?? true,
    connections: within("connections", options.connections, 4, 1, 32),
    waitingConnections: within("waitingConnections", options.waitingConnections, 4, 0, 64),
    commandTimeoutMs: within("commandTimeoutMs", options.commandTimeoutMs, 5_000, 100, 60_000),
    rememberMs: within("rememberMs", options.rememberMs, HOUR_MS, 100, 168 * HOUR_MS),
  });
}

/** The engine for `mysql://…` and `mariadb://…`; see `urlOptions` for what may stand behind the question mark. */
export function fromUrl(url: string): Engine {
  return mysql({ url });
}

function within(name: string, value: number | undefined, standard: number, least: number, most: number): number {
  const number = value ?? standard;
  if (Number.isFinite(number) && number >= least && number <= most) return number;
  throw new ConfigError(`${name} is a number between ${least} and ${most}`);
}
