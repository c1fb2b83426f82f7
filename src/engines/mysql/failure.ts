/** What the server's error numbers mean to us. The numbers are the same in MySQL and MariaDB. */
import { ConfigError, EngineUnavailableError, HoldfastError } from "../../engine/errors.ts";

/** Another transaction was in the way and this one was undone; it may be sent again at once. */
const TRY_AGAIN = new Set([
  1205, // lock wait timeout
  1213, // deadlock; also a lost certification of a Galera or group replication cluster
  1020, // record has changed since it was read (MariaDB, innodb_snapshot_isolation)
  3101, // transaction rolled back by a plugin (group replication)
]);

const READ_ONLY = new Set([1290, 1792, 1836]);

/** Number -> what to do about it. */
const CONFIGURATION: ReadonlyMap<number, string> = new Map([
  [1044, "the user may not use this database"],
  [1045, "user or password is wrong (MariaDB says the same when it takes only connections with TLS)"],
  [1698, "this user may not log in this way"],
  [1046, "no database is chosen: name one in the URL or in the pool's settings"],
  [1049, "there is no such database: create it first"],
  [1142, "the user lacks a privilege on the tables of Holdfast; `holdfast sql mysql` prints the least privileges"],
  [1143, "the user lacks a privilege on a column; `holdfast sql mysql` prints the least privileges"],
  [1227, "the user lacks a privilege"],
  [1251, "the server wants another way to log in than this client offers"],
  [1524, "the server does not know the user's way to log in"],
  [1054, "the tables of Holdfast are of another version; `holdfast sql mysql` prints the right ones"],
  [1146, "the tables of Holdfast are missing; `holdfast sql mysql` prints them"],
  [1665, "the binary log must not be in STATEMENT format (binlog_format=ROW or MIXED)"],
  [3159, "the server takes only connections with TLS: add ?tls=on to the URL"],
  [4031, "the server takes only connections with TLS: add ?tls=on to the URL"],
]);

export function errorNumber(error: unknown): number | undefined {
  const number: unknown = typeof error === "object" && error !== null && "errno" in error ? error.errno : undefined;
  return typeof number === "number" ? number : undefined;
}

export function maySendAgain(error: unknown): boolean {
  return TRY_AGAIN.has(errorNumber(error) ?? 0);
}

export function isReadOnly(error: unknown): boolean {
  return READ_ONLY.has(errorNumber(error) ?? 0);
}

export function isMissingTable(error: unknown): boolean {
  return errorNumber(error) === 1146;
}

/** Whether the connection is over with it. */
export function isFatal(error: unknown): boolean {
  return typeof error === "object" && error !== null && "fatal" in error && error.fatal === true;
}

/** The error for our callers. `doing` completes "while …". */
export function failure(error: unknown, doing: string): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const options = { cause: withoutSql(error) };
  const number = errorNumber(error);
  const advice = number === undefined ? undefined : CONFIGURATION.get(number);
  if (advice !== undefined) return new ConfigError(`MySQL error ${number} while ${doing}: ${advice}`, options);
  const what = error instanceof Error ? error.message : "unknown error";
  return new EngineUnavailableError(`the MySQL server failed while ${doing}: ${what}`, options);
}

/** The driver attaches the statement to its errors, and statements hold owners, which nobody may read in a log. */
function withoutSql(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const bare = new Error(error.message);
  bare.name = error.name;
  const { code, errno } = error as { code?: unknown; errno?: unknown };
  return Object.assign(bare, { code, errno });
}
