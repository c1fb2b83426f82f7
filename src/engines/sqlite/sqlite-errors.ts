/** What SQLite's result codes mean to somebody who wants a lock. */
import { ConfigError, EngineUnavailableError, HoldfastError } from "../../engine/errors.ts";

const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const CANTOPEN = 14;
const PROTOCOL = 15;
const NOTADB = 26;

/** The primary result code of an error of node:sqlite, or undefined for any other error. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  return error.errcode & 0xff;
}

/** Somebody else writes, or recovers the file after a crash: try again. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED || code === PROTOCOL;
}

/** The error that the caller gets for `error`; says what to do where something can be done. */
export function engineError(error: unknown, path: string): unknown {
  if (error instanceof HoldfastError) return error;
  const options = { cause: error };
  switch (resultCode(error)) {
    case undefined:
      return error;
    case READONLY:
      return new ConfigError(
        `the lock file ${path} cannot be written: give this user write permission for it and for its directory`,
        options,
      );
    case CANTOPEN:
      return new ConfigError(
        `the lock file ${path} cannot be opened: it must be a file that this user may read and write, in a directory ` +
          "where this user may make files (SQLite keeps two more beside it)",
        options,
      );
    case CORRUPT:
    case NOTADB:
      return new ConfigError(
        `${path} is not a lock file, or it is damaged: choose another path, or stop every program that uses it and ` +
          "remove it together with its -wal and -shm files (all locks in it are then forgotten)",
        options,
      );
    case IOERR:
      return new EngineUnavailableError(
        `the lock file ${path} cannot be used: ${messageOf(error)}. If somebody has removed it, or its -wal or -shm ` +
          "file, while it was in use: stop every program that uses it, then remove what is left of the three",
        options,
      );
    default:
      return new EngineUnavailableError(`the lock file ${path} cannot be used: ${messageOf(error)}`, options);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
