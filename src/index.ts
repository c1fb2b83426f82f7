/** Distributed locks: one model on many engines. `connect()` is where everything begins. */
import type { Engine } from "./engine/engine.ts";
import { engineForUrl } from "./engines/registry.ts";
import { type LockManager, openLockManager } from "./lock/lock-manager.ts";
import type { LeaseOptions } from "./lock/options.ts";

/**
 * Connects to an engine and returns its locks.
 *
 * @param engine A URL (`sqlite:./locks.db`, `memory:` …) or an engine made by a factory of `holdfast/engines/…`.
 * @param defaults Lease options for every request of this connection.
 * @throws `ConfigError` for a wrong URL, option or server setting; `EngineUnavailableError` when the server cannot be reached.
 */
export async function connect(engine: string | Engine, defaults?: LeaseOptions | null): Promise<LockManager> {
  return await openLockManager(typeof engine === "string" ? await engineForUrl(engine) : engine, defaults ?? {});
}

export type { Client, Engine, Grant, Lease, Queue, QueueEntry, RequestSpec, Traits } from "./engine/engine.ts";
export type { Clock, Instant, Timer } from "./engine/clock.ts";
export type { LockMode } from "./engine/queue.ts";
export {
  ClosedError,
  ConfigError,
  EngineUnavailableError,
  HoldfastError,
  LockLostError,
  LockStolenError,
  LockTimeoutError,
  NotSupportedError,
  StaleTokenError,
} from "./engine/errors.ts";
export type { ErrorCode, LossReason } from "./engine/errors.ts";
export type { CampaignOptions, Election, LeadOptions } from "./lock/election.ts";
export type { HeldLock } from "./lock/held-lock.ts";
export type { LockManager } from "./lock/lock-manager.ts";
export type { Leader, ObserveOptions } from "./lock/leader.ts";
export type { LockSet } from "./lock/lock-set.ts";
export type { Mutex, MutexOptions, RecipeOptions } from "./lock/mutex.ts";
export type { ReadWriteLock } from "./lock/read-write-lock.ts";
export type { SemaphoreOptions } from "./lock/semaphore.ts";
export type { LockInfo, QueryFilter, QueryResult } from "./lock/query.ts";
export type { AcquireOptions, LeaseOptions, RequestOptions, TryOptions } from "./lock/options.ts";
