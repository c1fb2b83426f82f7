/**
 * Many readers or one writer, in the order in which they came: readers that come behind a waiting writer wait behind it,
 * so writers do not starve.
 */
import { type Mutex, type RecipeOptions, RecipeMutex } from "./mutex.ts";
import type { Requests } from "./requests.ts";

export interface ReadWriteLock {
  /** Shared with other readers. */
  readonly read: Mutex;
  /**
   * Alone. Asked for inside a `read.request` callback of the same name (as the async context tells), it is refused with
   * `NotSupportedError`: it would wait for its own reader.
   */
  readonly write: Mutex;
}

/** Errors: `ConfigError` where the engine offers exclusive locks only. */
export function readWriteLock(requests: Requests, name: string, defaults: RecipeOptions): ReadWriteLock {
  return {
    read: new RecipeMutex(requests, name, { mode: "shared", limit: Infinity }, defaults),
    write: new RecipeMutex(requests, name, { mode: "exclusive", limit: 1, notInsideShared: true }, defaults),
  };
}
