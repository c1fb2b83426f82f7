/** The locks of one connection: requests go in, held locks come out. */
import { hostname } from "node:os";
import { type Client, type Engine, type Grant, type RequestSpec, type Traits } from "../engine/engine.ts";
import { ClosedError, ConfigError, LockTimeoutError } from "../engine/errors.ts";
import { newOwner } from "../engine/name.ts";
import { handleFor, type HeldLock } from "./held-lock.ts";
import { Hold } from "./hold.ts";
import { HoldKeeper } from "./hold-keeper.ts";
import { NestingWatch } from "./nesting.ts";
import { type LockInfo, queryEngine, type QueryFilter, type QueryResult } from "./query.ts";
import {
  type AcquireOptions,
  checkLease,
  checkName,
  checkOptions,
  type LeaseOptions,
  type RequestOptions,
  type TryOptions,
  type Wanted,
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

class EngineLockManager implements LockManager {
  readonly #engine: Engine;
  readonly #defaults: LeaseOptions;
  readonly #client: Client;
  readonly #keeper: HoldKeeper;
  readonly #nesting: NestingWatch;
  #closing: Promise<void> | undefined;

  constructor(engine: Engine, defaults: LeaseOptions) {
    this.#engine = engine;
    this.#defaults = defaults;
    this.#client = { clientId: newOwner(engine.clock), host: hostname(), pid: process.pid };
    this.#keeper = new HoldKeeper(engine.clock, engine.traits.lease === "lease");
    this.#nesting = new NestingWatch(this.#keeper.alarms, engine.clock);
  }

  get traits(): Traits {
    return this.#engine.traits;
  }

  request<T>(name: string, callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  request<T>(
    name: string,
    options: RequestOptions & { ifAvailable?: false | undefined },
    callback: (lock: HeldLock) => T,
  ): Promise<Awaited<T>>;
  request<T>(name: string, options: RequestOptions, callback: (lock: HeldLock | null) => T): Promise<Awaited<T>>;
  async request<T>(
    name: string,
    second: RequestOptions | null | undefined | ((lock: HeldLock) => T),
    third?: ((lock: HeldLock) => T) | ((lock: HeldLock | null) => T),
  ): Promise<Awaited<T>> {
    const callback: unknown = typeof second === "function" ? second : third;
    if (typeof callback !== "function") throw new TypeError("request needs a callback");
    const run = callback as (lock: HeldLock | null) => T;
    const wanted = this.#check(name, typeof second === "function" ? {} : (second ?? {}));
    const hold = await this.#nesting.waiting(name, this.#hold(name, wanted));
    if (hold !== null) return await this.#runHeld(hold, run);
    if (!wanted.ifAvailable) throw new LockTimeoutError(name, wanted.waitMs);
    return await run(null);
  }

  async #runHeld<T>(hold: Hold, run: (lock: HeldLock) => T): Promise<Awaited<T>> {
    // Stolen between the grant and here: the callback is spared.
    if (hold.loss !== undefined) throw hold.loss;
    const handle = handleFor(hold);
    let outcome: { readonly value: Awaited<T> } | { readonly error: unknown };
    try {
      outcome = { value: await this.#nesting.inside(hold.name, () => run(handle)) };
    } catch (error) {
      outcome = { error };
    }
    const loss = await hold.lossAtEnd();
    await hold.release();
    if (loss !== undefined) {
      if ("error" in outcome && outcome.error !== loss) loss.cause = outcome.error;
      throw loss;
    }
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  async acquire(name: string, options: AcquireOptions = {}): Promise<HeldLock> {
    const { mode, waitMs, signal } = options ?? {};
    const wanted = this.#check(name, { ...lease(options), mode, waitMs, signal });
    const hold = await this.#hold(name, wanted);
    if (hold === null) throw new LockTimeoutError(name, wanted.waitMs);
    return handleFor(hold);
  }

  async tryAcquire(name: string, options: TryOptions = {}): Promise<HeldLock | null> {
    const wanted = this.#check(name, { ...lease(options), mode: options?.mode, ifAvailable: true });
    const hold = await this.#hold(name, wanted);
    return hold === null ? null : handleFor(hold);
  }

  async query(filter: QueryFilter = {}): Promise<QueryResult> {
    this.#checkOpen();
    return await this.#keeper.during(queryEngine(this.#engine, filter));
  }

  async evict(name: string, token: bigint): Promise<boolean> {
    checkName(name);
    if (typeof token !== "bigint") throw new TypeError("a token is a bigint");
    this.#checkOpen();
    return await this.#keeper.during(this.#engine.evict(name, token));
  }

  close(): Promise<void> {
    this.#closing ??= this.#keeper.during(this.#close());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    // Signals and releases first: the engine must still be there for them. Grants that come meanwhile are given back.
    await this.#keeper.endAll("closed");
    await this.#engine.close();
    this.#keeper.close();
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new ClosedError();
  }

  /** All checks of the arguments, before an aborted signal and before any I/O. */
  #check(name: string, options: RequestOptions): Wanted {
    checkName(name);
    if (typeof options !== "object") throw new TypeError("options must be an object");
    const wanted = checkOptions(options, this.#defaults, this.traits);
    this.#checkOpen();
    return wanted;
  }

  /** Queues and waits. Null: not free, and not to wait. */
  async #hold(name: string, wanted: Wanted): Promise<Hold | null> {
    wanted.signal?.throwIfAborted();
    const wait = !wanted.ifAvailable && wanted.waitMs > 0;
    const limit = wanted.mode === "exclusive" ? 1 : Infinity;
    const { mode, ttlMs, graceMs, minHoldMs, steal } = wanted;
    const client = this.#client;
    const spec: RequestSpec = { name, mode, limit, ttlMs, graceMs, minHoldMs, wait, steal, client };
    const grant = await this.#keeper.during(this.#granted(spec, wanted));
    if (grant === null) return null;
    if (this.#closing !== undefined || wanted.signal?.aborted) {
      // The grant crossed an abort: it is given back unseen.
      await this.#keeper.during(grant.discard());
      wanted.signal?.throwIfAborted();
      throw new ClosedError();
    }
    const hold = new Hold(this.#keeper, grant, name, wanted);
    if (hold.loss !== undefined) throw hold.loss;
    return hold;
  }

  #granted(spec: RequestSpec, wanted: Wanted): Promise<Grant | null> {
    if (!spec.wait || wanted.waitMs === Infinity) return this.#engine.request(spec, wanted.signal);
    return this.#grantedInTime(spec, wanted);
  }

  async #grantedInTime(spec: RequestSpec, { waitMs, signal }: Wanted): Promise<Grant | null> {
    const controller = new AbortController();
    const alarm = this.#keeper.alarms.set(this.#engine.clock.monotonicMs() + waitMs, () =>
      controller.abort(new LockTimeoutError(spec.name, waitMs)),
    );
    const onAbort = (): void => controller.abort(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await this.#engine.request(spec, controller.signal);
    } finally {
      alarm.cancel();
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

/** The lease options alone: others, such as steal, do not slip in. */
function lease(options: LeaseOptions | null): LeaseOptions {
  const { ttlMs, minHoldMs, maxHoldMs, graceMs } = options ?? {};
  return { ttlMs, minHoldMs, maxHoldMs, graceMs };
}

/** Opens `engine` and puts a lock manager on it. The manager owns the engine from then on. */
export async function openLockManager(engine: Engine, defaults: LeaseOptions = {}): Promise<LockManager> {
  if (typeof engine?.request !== "function") throw new ConfigError("connect takes a URL or an engine");
  await engine.open();
  try {
    checkLease({}, defaults, engine.traits);
  } catch (error) {
    await engine.close();
    throw error;
  }
  return new EngineLockManager(engine, { ...defaults });
}
