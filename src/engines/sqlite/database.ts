/** Opens the lock file: makes it if need be, and refuses whatever is not ours to write. */
import { chmodSync, closeSync, linkSync, openSync, realpathSync, statSync, unlinkSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sleep, type Clock } from "../../engine/clock.ts";
import { ConfigError, EngineUnavailableError } from "../../engine/errors.ts";
import { lockFileIdentity } from "./file-identity.ts";
import { refuseNetworkFileSystem } from "./file-system.ts";
import { randomId } from "./machine.ts";
import { engineError, isBusy } from "./sqlite-errors.ts";
import { sqlFile } from "./statements.ts";

/** "Hold", as in schema.sql. */
const APPLICATION_ID = 0x486f6c64;
const SCHEMA_VERSION = 1;
const FILE_MODE = 0o600;
/** Small pages: a lock and its release write one each, and the log holds whole pages. */
const PAGE_BYTES = 1024;
/** For opening: several processes may make or recover the file at once. */
const PATIENCE_MS = 5_000;
const RETRY_MS = 4;

export interface LockFile {
  readonly database: DatabaseSync;
  /** With symbolic links resolved: what lies beside the file lies beside the real one. */
  readonly path: string;
  /** Which files these are: should others stand there, what is written to these is seen by nobody who comes now. */
  readonly identity: string;
}

/** Opens the lock file at `path`. Throws `ConfigError` with what to do, or `EngineUnavailableError` when it stays busy. */
export async function openLockFile(path: string, clock: Clock): Promise<LockFile> {
  const given = resolve(path);
  checkPlace(given);
  refuseNetworkFileSystem(dirname(given));
  const leftToSqlite = createPrivately(given, clock);
  const database = connectTo(given);
  try {
    const path = realpathSync(given);
    refuseNetworkFileSystem(dirname(path));
    if (leftToSqlite) chmodSync(path, FILE_MODE);
    await whileBusy(clock, () => prepare(database, path));
    return { database, path, identity: lockFileIdentity(path) };
  } catch (error) {
    database.close();
    throw isBusy(error)
      ? new EngineUnavailableError(`the lock file ${given} stayed locked for ${PATIENCE_MS} ms`, { cause: error })
      : engineError(error, given);
  }
}

function connectTo(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path);
  } catch (error) {
    throw engineError(error, path);
  }
}

function checkPlace(path: string): void {
  const directory = dirname(path);
  const place = statSync(directory, { throwIfNoEntry: false });
  if (place === undefined) {
    throw new ConfigError(`the directory ${directory} does not exist: make it (mkdir -m 700), or choose another path`);
  }
  if (!place.isDirectory()) throw new ConfigError(`${directory} is not a directory`);
  const file = statSync(path, { throwIfNoEntry: false });
  if (file !== undefined && !file.isFile()) {
    throw new ConfigError(`${path} is not a file: give the path of a lock file, for example ${join(path, "locks.db")}`);
  }
}

/**
 * Makes an empty file that only this user may open, unless there is one. Never opens `path` itself: closing it would
 * drop the locks that this process has on it through another connection. True when SQLite has to make it.
 */
function createPrivately(path: string, clock: Clock): boolean {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return false;
  const draft = join(dirname(path), `.${basename(path).slice(0, 100)}-${randomId(clock)}`);
  try {
    closeSync(openSync(draft, "wx", FILE_MODE));
  } catch (error) {
    throw new ConfigError(
      `no lock file can be made in ${dirname(path)}: let this user write there, or choose another path`,
      {
        cause: error,
      },
    );
  }
  try {
    linkSync(draft, path);
    return false;
  } catch {
    // Made by somebody else in the meantime, or a file system without links: then SQLite makes it.
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } finally {
    unlinkSync(draft);
  }
}

async function whileBusy(clock: Clock, run: () => void): Promise<void> {
  const until = clock.monotonicMs() + PATIENCE_MS;
  const alive = clock.stayAlive();
  try {
    for (;;) {
      try {
        run();
        return;
      } catch (error) {
        if (!isBusy(error) || clock.monotonicMs() > until) throw error;
      }
      await sleep(clock, RETRY_MS * (0.5 + clock.random()));
    }
  } finally {
    alive.cancel();
  }
}

/** Looks before it writes: a file of another application is left as it was. */
function prepare(database: DatabaseSync, path: string): void {
  // In one transaction, or another process makes the tables between two of the questions.
  const fresh = inTransaction(database, "BEGIN", () => isFresh(database, path));
  if (fresh) database.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  const mode = single(database, "PRAGMA journal_mode = WAL");
  if (mode !== "wal") {
    throw new ConfigError(
      `the file system of ${path} cannot keep a write-ahead log (SQLite uses "${String(mode)}" there)`,
    );
  }
  database.exec("PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF; PRAGMA journal_size_limit = 4194304");
  if (!fresh) return;
  inTransaction(database, "BEGIN IMMEDIATE", () => {
    // Another process may have been first.
    if (isFresh(database, path)) database.exec(sqlFile("schema.sql"));
  });
}

function isFresh(database: DatabaseSync, path: string): boolean {
  const application = single(database, "PRAGMA application_id");
  const version = Number(single(database, "PRAGMA user_version"));
  if (application === APPLICATION_ID) {
    if (version === SCHEMA_VERSION) return false;
    throw new ConfigError(
      `the lock file ${path} has version ${version}, this Holdfast knows ${SCHEMA_VERSION}: use one version of Holdfast ` +
        "for all programs that share a lock file, or a lock file for each",
    );
  }
  const tables = single(database, "SELECT count(*) FROM sqlite_schema");
  if (application === 0 && version === 0 && tables === 0) return true;
  throw new ConfigError(`${path} is a database of another application: give Holdfast a file of its own`);
}

function inTransaction<T>(database: DatabaseSync, begin: "BEGIN" | "BEGIN IMMEDIATE", work: () => T): T {
  database.exec(begin);
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    try {
      database.exec("ROLLBACK");
    } catch {
      // SQLite has ended the transaction by itself.
    }
    throw error;
  }
}

function single(database: DatabaseSync, sql: string): unknown {
  const row = database.prepare(sql).get();
  return row === undefined ? undefined : Object.values(row)[0];
}
