/** How a wish becomes a hold: the checks, the request to the engine, the wait. The manager and every recipe go through here. */
import { hostname } from "node:os";
import type { Clock } from "../engine/clock.ts";
import type { Client, Engine, Grant, RequestSpec } from "../engine/engine.ts";
import { ClosedError, LockTimeoutError } from "../engine/errors.ts";
import { newOwner } from "../engine/name.ts";
import { handleFor, type HeldLock } from "./held-lock.ts";
import { Hold } from "./hold.ts";
import { HoldKeeper } from "./hold-keeper.ts";
import { NestingWatch } from "./nesting.ts";
import {
  checkName,
  checkObject,
  checkOptions,
  type LeaseOptions,
  type RequestOptions,
  type Wanted,
} from "./options.ts";

export class Requests {
  readonly engine: Engine;
  readonly keeper: HoldKeeper;
  readonly nesting: NestingWatch;
  readonly defaults: LeaseOptions;
  readonly #client: Client;
  readonly #closing = new AbortController();

  constructor(engine: Engine, defaults: LeaseOptions) {
    this.engine = engine;
    this.defaults = defaults;
    this.#client = { clientId: newOwner(engine.clock), host: hostname(), pid: process.pid };
    this.keeper = new HoldKeeper(engine.clock, engine.traits.lease === "lease");
    this.nesting = new NestingWatch(this.keeper.alarms, engine.clock);
  }

  get clock(): Clock {
    return this.engine.clock;
  }

  /** Aborts when the manager begins to close. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** From now on nothing is granted. */
  shut(): void {
    this.#closing.abort(new ClosedError());
  }

  checkOpen(): void {
    if (this.closing.aborted) throw new ClosedError();
  }

  /** All checks of the arguments, before an aborted signal and before any I/O. */
  check(name: string, options: RequestOptions, defaults: LeaseOptions = this.defaults): Wanted {
    checkName(name);
    checkObject(options);
    const wanted = checkOptions(options, defaults, this.engine.traits);
    this.checkOpen();
    return wanted;
  }

  /** Queues and waits. Null: not free, and not to wait. */
  async hold(name: string, wanted: Wanted): Promise<Hold | null> {
    wanted.signal?.throwIfAborted();
    const wait = !wanted.ifAvailable && wanted.waitMs > 0;
    const { mode, limit, ttlMs, graceMs, minHoldMs, steal, value } = wanted;
    const client = this.#client;
    const spec: RequestSpec = { name, mode, limit, ttlMs, graceMs, minHoldMs, wait, steal, client, value };
    const grant = await this.keeper.during(this.#granted(spec, wanted));
    if (grant === null) return null;
    if (this.closing.aborted || wanted.signal?.aborted) {
      // The grant crossed an abort: it is given back unseen, and the caller does not wait for that.
      void this.keeper.during(grant.discard());
      wanted.signal?.throwIfAborted();
      throw new ClosedError();
    }
    const hold = new Hold(this.keeper, grant, name, wanted);
    if (hold.loss !== undefined) throw hold.loss;
    return hold;
  }

  /** Waits and hands over. Errors: `LockTimeoutError` and those of the engine. */
  async handle(name: string, wanted: Wanted): Promise<HeldLock> {
    const hold = await this.nesting.waiting(name, this.hold(name, wanted));
    if (hold === null) throw new LockTimeoutError(name, wanted.waitMs);
    return handleFor(hold);
  }

  /** Hands over what is free now, else null. */
  async handleIfFree(name: string, wanted: Wanted): Promise<HeldLock | null> {
    const hold = await this.hold(name, wanted);
    return hold === null ? null : handleFor(hold);
  }

  /** Runs `run` while `name` is held; resolves to what it returns, after the release. */
  async scoped<T>(
    name: string,
    wanted: Wanted,
    run: (lock: HeldLock | null) => T,
    reentrant = false,
  ): Promise<Awaited<T>> {
    const hold = await this.nesting.waiting(name, this.hold(name, wanted));
    if (hold === null) {
      if (!wanted.ifAvailable) throw new LockTimeoutError(name, wanted.waitMs);
      return await run(null);
    }
    // Stolen between the grant and here: the callback is spared.
    if (hold.loss !== undefined) throw hold.loss;
    try {
      return await this.runInside(hold, handleFor(hold), reentrant, run);
    } finally {
      await hold.release();
    }
  }

  /** Runs `run` under a hold. A loss before it ends is thrown, whatever it returned; what it threw is then the cause. */
  async runInside<T>(
    hold: Hold,
    handle: HeldLock,
    reentrant: boolean,
    run: (lock: HeldLock) => T,
  ): Promise<Awaited<T>> {
    let outcome: { readonly value: Awaited<T> } | { readonly error: unknown };
    try {
      outcome = { value: await this.nesting.inside(hold, handle, reentrant, () => run(handle)) };
    } catch (error) {
      outcome = { error };
    }
    const loss = await hold.lossAtEnd();
    if (loss !== undefined) {
      if ("error" in outcome && outcome.error !== loss) loss.cause = outcome.error;
      throw loss;
    }
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** Starts `work` with a signal that aborts with the caller's, or with `LockTimeoutError` when `waitMs` is over. */
  async inTime<T>(
    name: string,
    { waitMs, signal }: Pick<Wanted, "waitMs" | "signal">,
    work: (signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> {
    if (waitMs === Infinity) return await work(signal);
    const controller = new AbortController();
    const alarm = this.keeper.alarms.set(this.clock.monotonicMs() + waitMs, () =>
      controller.abort(new LockTimeoutError(name, waitMs)),
    );
    const onAbort = (): void => controller.abort(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await work(controller.signal);
    } finally {
      alarm.cancel();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #granted(spec: RequestSpec, wanted: Wanted): Promise<Grant | null> {
    if (!spec.wait || wanted.waitMs === Infinity) return this.engine.request(spec, wanted.signal);
    return this.inTime(spec.name, wanted, (signal) => this.engine.request(spec, signal));
  }
}
