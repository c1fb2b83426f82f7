/** The locks of one connection: requests go in, held locks come out. */
import type { Engine, Traits } from "../engine/engine.ts";
import { ConfigError } from "../engine/errors.ts";
import { type Election, QueueElection } from "./election.ts";
import type { HeldLock } from "./held-lock.ts";
import { acquireSet, inByteOrder, type LockSet } from "./lock-set.ts";
import { type Mutex, type MutexOptions, type RecipeOptions, RecipeMutex } from "./mutex.ts";
import { checkFilter, type LockInfo, queryEngine, type QueryFilter, type QueryResult } from "./query.ts";
import { readWriteLock, type ReadWriteLock } from "./read-write-lock.ts";
import { Requests } from "./requests.ts";
import { semaphore, type SemaphoreOptions } from "./semaphore.ts";
import {
  type AcquireOptions,
  callbackOf,
  checkLease,
  checkName,
  checkObject,
  forAttempt,
  forWait,
  type LeaseOptions,
  type RequestOptions,
  type TryOptions,
} from "./options.ts";

export interface LockManager extends AsyncDisposable {
  /** What the engine behind it promises. */
  readonly traits: Traits;
  /**
   * Runs `callback` while holding `name`; resolves to what it returns, after the release. The Web Locks shape.
   * Errors: those of `acquire`; `LockLostError` when the lock was lost before the callback ended (the callback's own
   * error is then its cause); otherwise the callback's own. Cost: one round trip to lock, one to unlock.
   */
  request<T>(name: string, callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  request<T>(
    name: string,
    options: RequestOptions & { ifAvailable?: false | undefined },
    callback: (lock: HeldLock) => T,
  ): Promise<Awaited<T>>;
  request<T>(name: string, options: RequestOptions, callback: (lock: HeldLock | null) => T): Promise<Awaited<T>>;
  /**
   * Waits for `name` and holds it until released. Prefer `request`, or `await using`.
   * Errors: `LockTimeoutError` (waitMs), the signal's reason, `EngineUnavailableError`, `ConfigError`, `ClosedError`.
   * Cost: one round trip when free; while waiting, a keep-alive every third of the pending lease.
   */
  acquire(name: string, options?: AcquireOptions): Promise<HeldLock>;
  /** Holds `name` if it is free now, else resolves to null and leaves nothing behind. Cost: one round trip. */
  tryAcquire(name: string, options?: TryOptions): Promise<HeldLock | null>;
  /**
   * Waits for all of `names` and holds them until released: all or none, with one time-out and one signal for all. Taken
   * one after the other in the order of their bytes, doubles once. While it waits for one it holds those before it.
   * Errors: as `acquire`; `LockLostError` when one is lost before the last is there. Cost: one round trip per name.
   */
  acquireAll(names: readonly string[], options?: AcquireOptions): Promise<LockSet>;
  /** One exclusive lock by name, with defaults for its requests; `reentrant` for the scoped form. No I/O. */
  mutex(name: string, defaults?: MutexOptions): Mutex;
  /** Many readers or one writer; in order, so that neither starves. Throws `ConfigError` where `traits.shared` is false. */
  readWriteLock(name: string, defaults?: RecipeOptions): ReadWriteLock;
  /** At most `permits` holders at once. Throws `ConfigError` where `traits.limits` is false. */
  semaphore(name: string, options: SemaphoreOptions): Mutex;
  /** One leader among all that stand for it. */
  election(name: string, defaults?: LeaseOptions): Election;
  /**
   * Who holds and who waits, pending ones in order. A snapshot for people and dashboards, not to decide by.
   * `prefix` filters names, `limit` bounds the answer (default 10,000 entries).
   */
  query(filter?: QueryFilter): Promise<QueryResult>;
  /**
   * Ends the request that holds `name` with `token`, by hand: its holder's signal aborts at its next renewal at the
   * latest. Outside the promise of exclusion; tokens protect. Resolves to false when nobody holds it with that token.
   */
  evict(name: string, token: bigint): Promise<boolean>;
  /** Withdraws what is pending (it rejects with `ClosedError`), releases what is held, then lets go of the engine. */
  close(): Promise<void>;
}

export type { LockInfo };

/** The largest integer that databases keep. */
const HIGHEST_TOKEN = 2n ** 63n - 1n;

class EngineLockManager implements LockManager {
  readonly #requests: Requests;
  #closing: Promise<void> | undefined;

  constructor(engine: Engine, defaults: LeaseOptions) {
    this.#requests = new Requests(engine, defaults);
  }

  get traits(): Traits {
    return this.#requests.engine.traits;
  }

  request<T>(name: string, callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  request<T>(name: string, options: RequestOptions, callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  async request<T>(
    name: string,
    second: RequestOptions | null | undefined | ((lock: HeldLock) => T),
    third?: (lock: HeldLock) => T,
  ): Promise<Awaited<T>> {
    const { options, run } = callbackOf(second, third);
    return await this.#requests.scoped(name, this.#requests.check(name, options), run);
  }

  async acquire(name: string, options: AcquireOptions = {}): Promise<HeldLock> {
    return await this.#requests.handle(name, this.#requests.check(name, forWait(options)));
  }

  async tryAcquire(name: string, options: TryOptions = {}): Promise<HeldLock | null> {
    return await this.#requests.handleIfFree(name, this.#requests.check(name, forAttempt(options)));
  }

  async acquireAll(names: readonly string[], options: AcquireOptions = {}): Promise<LockSet> {
    const ordered = inByteOrder(names);
    return await acquireSet(this.#requests, ordered, this.#requests.check(ordered[0] ?? "", forWait(options)));
  }

  mutex(name: string, options: MutexOptions = {}): Mutex {
    const { reentrant = false, ...defaults } = options ?? {};
    return new RecipeMutex(this.#requests, name, { mode: "exclusive", limit: 1, reentrant }, defaults);
  }

  readWriteLock(name: string, defaults: RecipeOptions = {}): ReadWriteLock {
    return readWriteLock(this.#requests, name, defaults);
  }

  semaphore(name: string, options: SemaphoreOptions): Mutex {
    return semaphore(this.#requests, name, options);
  }

  election(name: string, defaults: LeaseOptions = {}): Election {
    return new QueueElection(this.#requests, name, defaults);
  }

  async query(filter: QueryFilter = {}): Promise<QueryResult> {
    checkFilter(filter);
    this.#requests.checkOpen();
    return await this.#requests.keeper.during(queryEngine(this.#requests.engine, filter));
  }

  async evict(name: string, token: bigint): Promise<boolean> {
    checkName(name);
    if (typeof token !== "bigint") throw new TypeError("a token is a bigint");
    this.#requests.checkOpen();
    // No engine gives such a token, and not every one can be asked about it.
    if (token < 1n || token > HIGHEST_TOKEN) return false;
    return await this.#requests.keeper.during(this.#requests.engine.evict(name, token));
  }

  close(): Promise<void> {
    this.#closing ??= this.#requests.keeper.during(this.#close());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { engine, keeper } = this.#requests;
    // Signals and releases first: the engine must still be there for them. Grants that come meanwhile are given back.
    this.#requests.shut();
    await keeper.endAll("closed");
    await engine.close();
    keeper.close();
  }
}

/** Opens `engine` and puts a lock manager on it. The manager owns the engine from then on. */
export async function openLockManager(engine: Engine, defaults: LeaseOptions = {}): Promise<LockManager> {
  if (typeof engine?.request !== "function") throw new ConfigError("connect takes a URL or an engine");
  checkObject(defaults);
  await engine.open();
  try {
    checkLease({}, defaults, engine.traits);
  } catch (error) {
    await engine.close();
    throw error;
  }
  return new EngineLockManager(engine, { ...defaults });
}
