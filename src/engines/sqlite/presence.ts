/**
 * Presence: an exclusive SQLite transaction held open on a small file beside the lock file, one file for each connection,
 * never used again. The system drops such a lock when the process dies, and containers on one kernel share it, so whoever
 * can take it knows that the process is dead.
 *
 * Files are made and registered, or probed and removed, only inside the lock file's own `BEGIN IMMEDIATE`. They are never
 * opened through node:fs: closing any descriptor of a file drops all POSIX locks that the process has on it.
 */
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileIdentity } from "./file-identity.ts";
import { isBusy } from "./sqlite-errors.ts";

/** Permissions that go with those of the lock file: who may write that may look for the dead. */
const GROUP_AND_OTHERS = 0o066;

export const PRESENCE_SUFFIX = ".alive";
export const BELL_SUFFIX = ".bell";

/** What is known of somebody's presence: "unknown" proves nothing, then leases decide. */
export type Presence = "alive" | "dead" | "unknown";

export class PresenceFolder {
  /** Beside the lock file; also holds the sockets. */
  readonly path: string;
  readonly #lockFile: string;

  constructor(lockFile: string) {
    this.#lockFile = lockFile;
    this.path = `${lockFile}-presence`;
  }

  /** Makes the folder unless it is there. Its permissions follow those of the lock file: 0700 for 0600. */
  make(): void {
    const { mode, uid, gid } = statSync(this.#lockFile);
    try {
      mkdirSync(this.path, 0o700);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return;
      throw error;
    }
    const shared = mode & GROUP_AND_OTHERS;
    if (shared !== 0) chmodSync(this.path, 0o700 | shared | ((shared & 0o044) >> 2) | ((shared & 0o022) >> 1));
    this.#giveAway(this.path, uid, gid);
  }

  /** Root may use the file of another user: what it makes must not lock that user out. */
  #giveAway(path: string, uid: number, gid: number): void {
    if (process.platform !== "win32" && process.getuid?.() === 0 && uid !== 0) chownSync(path, uid, gid);
  }

  /** Makes a presence file and locks it. Inside the lock file's transaction. */
  enter(id: string): OwnPresence {
    this.make();
    const { mode, uid, gid } = statSync(this.#lockFile);
    const name = id + PRESENCE_SUFFIX;
    const path = join(this.path, name);
    const database = new DatabaseSync(path);
    try {
      // Nothing is ever written to it, so it needs no journal file either.
      database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
      chmodSync(path, 0o600 | (mode & GROUP_AND_OTHERS));
      this.#giveAway(path, uid, gid);
      return new OwnPresence(name, path, fileIdentity(path) ?? "", database);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /**
   * Whether the process that registered the file `name` with `inode` lives. Inside the lock file's transaction.
   * A missing file, or another one under its name (a copy, a restored backup), is "unknown". Cost: about 50 µs.
   */
  probe(name: string, inode: string): Presence {
    const path = join(this.path, name);
    if (inode === "" || fileIdentity(path) !== inode) return "unknown";
    let database: DatabaseSync | undefined;
    try {
      // Read-only, so that a missing file is not made anew; a shared lock is refused while the exclusive one is there.
      database = new DatabaseSync(path, { readOnly: true });
      database.exec("SELECT 1 FROM sqlite_schema");
      return "dead";
    } catch (error) {
      return isBusy(error) ? "alive" : "unknown";
    } finally {
      database?.close();
    }
  }

  /** Unlinks a file of this folder; harmless when it is gone. */
  remove(name: string): void {
    try {
      unlinkSync(join(this.path, name));
    } catch {
      // Gone already, or not ours to remove; a later sweep looks again.
    }
  }

  /** The names of what may be left behind by those who died before they were registered: at most `most`. */
  leftovers(most: number): string[] {
    try {
      return readdirSync(this.path)
        .filter((name) => name.endsWith(PRESENCE_SUFFIX) || name.endsWith(BELL_SUFFIX))
        .slice(0, most);
    } catch {
      return [];
    }
  }

  /** Like `probe`, for a file that nobody has registered. */
  probeUnregistered(name: string): Presence {
    return this.probe(name, fileIdentity(join(this.path, name)) ?? "");
  }
}

/** The presence of this connection, until it is left or the process ends. */
export class OwnPresence {
  readonly name: string;
  readonly inode: string;
  readonly #path: string;
  readonly #database: DatabaseSync;

  constructor(name: string, path: string, inode: string, database: DatabaseSync) {
    this.name = name;
    this.#path = path;
    this.inode = inode;
    this.#database = database;
  }

  /** After the row that points here is gone: drops the lock and the file. */
  leave(): void {
    this.#database.close();
    try {
      unlinkSync(this.#path);
    } catch {
      // The folder was cleaned by somebody.
    }
  }
}
