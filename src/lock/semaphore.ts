/**
 * At most `permits` holders at once, each with a lease of its own. The number travels with each request, so it may be
 * changed while in use: a request joins when fewer are held than the smallest number among those held and its own.
 */
import { ConfigError } from "../engine/errors.ts";
import { type Mutex, type RecipeOptions, RecipeMutex } from "./mutex.ts";
import type { Requests } from "./requests.ts";

export interface SemaphoreOptions extends RecipeOptions {
  /** How many may be held at once: an integer from 1 to 1,000,000. */
  permits: number;
}

const MOST_PERMITS = 1_000_000;

/** Errors: `ConfigError` for permits that are no such integer, and where the engine offers no limits (`traits.limits`). */
export function semaphore(requests: Requests, name: string, options: SemaphoreOptions): Mutex {
  const { permits, ...defaults } = options ?? {};
  if (!Number.isInteger(permits) || permits < 1 || permits > MOST_PERMITS) {
    throw new ConfigError(`permits must be an integer from 1 to ${MOST_PERMITS}, not ${String(permits)}`);
  }
  const { traits } = requests.engine;
  if (!traits.limits) throw new ConfigError(`the ${traits.engine} engine, as configured, offers no semaphores`);
  return new RecipeMutex(requests, name, { mode: "shared", limit: permits }, defaults);
}
