/** The embedded engine: locks in one SQLite file, for all processes of one machine. Needs no server. */
import { systemClock, type Clock } from "../../engine/clock.ts";
import type { Engine } from "../../engine/engine.ts";
import { ConfigError } from "../../engine/errors.ts";
import { LeaseEngine } from "../../engine/lease-engine.ts";
import { describeGroup } from "./guarded-group.ts";
import { SqliteStore } from "./store.ts";

export interface SqliteOptions {
  /** The lock file. Made if it is missing; its directory must exist. On a local disk, shared by all who use the locks. */
  path: string;
  /**
   * The id of a process group, or of a process. Besides its lease, its life keeps the places that this connection holds taken: should
   * this process die, the next holder is not let in before the group has ended. Default: none.
   */
  guardedPid?: number | undefined;
  /**
   * The process ends as soon as the locks are closed, and takes the connection with it. So whoever leaves the file last does not copy the
   * log (`-wal`) into it, with two `fsync`s and one more for the next log: what the next one finds is what a crash
   * leaves. Until it is copied, a power cut may take the latest changes away. Default: false.
   */
  endsWithProcess?: boolean | undefined;
  /** Default: this machine's clocks. */
  clock?: Clock | undefined;
}

/**
 * Locks in a SQLite file. Cost: one transaction to lock, one to unlock.
 * Throws `ConfigError` for a wrong option; `connect` reports what is wrong with the file.
 */
export function sqlite(options: SqliteOptions): Engine {
  const { path, guardedPid, endsWithProcess, clock = systemClock } = options;
  if (typeof path !== "string" || path === "") throw new ConfigError("sqlite needs the path of its lock file");
  if (path.includes("\0")) throw new ConfigError("the path of a lock file has no NUL in it");
  const guarded = guardedPid === undefined ? undefined : describeGroup(guardedPid);
  return new LeaseEngine(new SqliteStore({ path, clock, guarded, endsWithProcess }), clock);
}

/**
 * `sqlite:./locks.db`, `sqlite:/var/lib/app/locks.db`, `sqlite:///var/lib/app/locks.db`. The path is percent-decoded
 * (`%20` is a space, `%25` a percent sign); a query or a fragment is refused, so write `?` as `%3F` and `#` as `%23`.
 */
export function fromUrl(url: string, options: Omit<SqliteOptions, "path"> = {}): Engine {
  const text = url.replace(/^sqlite:/i, "");
  if (/[?#]/.test(text)) {
    throw new ConfigError("sqlite: takes a path and no options; write ? as %3F and # as %23 where the path has them");
  }
  if (/^\/\/[^/]/.test(text)) {
    throw new ConfigError("sqlite: has no host; write sqlite:/absolute/path or sqlite:./relative/path");
  }
  let path: string;
  try {
    path = decodeURIComponent(text.replace(/^\/\/\//, "/"));
  } catch (error) {
    throw new ConfigError("sqlite: the path is not well percent-encoded; write a percent sign as %25", {
      cause: error,
    });
  }
  if (path === ":memory:") throw new ConfigError("sqlite: needs a file; for locks within one process use memory:");
  return sqlite({ ...options, path });
}
