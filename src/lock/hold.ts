/**
 * A grant while it is held: renewed until released, lost by the deadline at the latest. All of its state is its own:
 * nothing is shared with an earlier or later hold of the same name.
 */
import type { Alarm, Alarms } from "../engine/alarms.ts";
import { Backoff } from "../engine/backoff.ts";
import { instant, type Clock } from "../engine/clock.ts";
import type { Grant } from "../engine/engine.ts";
import { ClosedError, lossError, type LockLostError, type LossReason } from "../engine/errors.ts";
import { deadlineMs, isUncertain, remainingMs } from "../engine/lease.ts";
import { renewalDueMs } from "../engine/place.ts";
import type { LockMode } from "../engine/queue.ts";
import type { Wanted } from "./options.ts";

/** What a hold needs of its manager. */
export interface Keeping {
  readonly clock: Clock;
  readonly alarms: Alarms;
  /** False on session engines: the session renews for all. */
  readonly renews: boolean;
  /** Keeps the process alive while `work` is under way. */
  during<T>(work: Promise<T>): Promise<T>;
  add(hold: Hold): void;
  remove(hold: Hold): void;
}

const FIRST_RETRY_MS = 20;

/** Handles that were let go of while held. */
const forgotten = new FinalizationRegistry<Hold>((hold) => hold.forget());

export class Hold {
  readonly name: string;
  readonly mode: LockMode;
  readonly token: bigint;
  readonly #keeping: Keeping;
  readonly #grant: Grant;
  readonly #graceMs: number;
  /** Monotonic instant at which it has been held for long enough. */
  readonly #maxHoldAtMs: number;
  readonly #longestRetryMs: number;
  #retry: Backoff | undefined;
  #alarm: Alarm | undefined;
  #retryAtMs = 0;
  #renewing = false;
  #forgotten = false;
  #released: Promise<void> | undefined;
  #loss: LockLostError | undefined;
  /** Set with `#loss` when the engine said that it is ours no more; a loss by the clock leaves the grace to use. */
  #gone = false;
  #controller: AbortController | undefined;
  #youngHandle: object | undefined;

  constructor(keeping: Keeping, grant: Grant, name: string, wanted: Wanted) {
    this.name = name;
    this.mode = wanted.mode;
    this.token = grant.token;
    this.#keeping = keeping;
    this.#grant = grant;
    this.#graceMs = wanted.graceMs;
    const { maxHoldMs } = wanted;
    this.#maxHoldAtMs = maxHoldMs === Infinity ? Infinity : keeping.clock.monotonicMs() + maxHoldMs;
    this.#longestRetryMs = Math.max(FIRST_RETRY_MS, wanted.ttlMs / 6);
    keeping.add(this);
    grant.onLoss((reason) => this.#lose(reason, true));
    if (this.#loss === undefined) this.#schedule();
  }

  get loss(): LockLostError | undefined {
    return this.#loss;
  }

  get released(): boolean {
    return this.#released !== undefined;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#loss !== undefined && !this.#controller.signal.aborted) this.#controller.abort(this.#loss);
    return this.#controller.signal;
  }

  /** Reads the clocks, so it is right even when a blocked event loop has run no timer yet. */
  isHeld(): boolean {
    if (this.#gone || this.#released !== undefined) return false;
    const now = instant(this.#keeping.clock);
    const lease = this.#grant.lease();
    if (isUncertain(lease, now)) {
      this.#renewSoon();
      return false;
    }
    return remainingMs(lease, now) > 0 && now.monoMs < this.#maxHoldAtMs;
  }

  remainingMs(): number {
    if (this.#gone || this.#released !== undefined) return 0;
    const now = instant(this.#keeping.clock);
    return Math.max(0, Math.min(remainingMs(this.#grant.lease(), now), this.#maxHoldAtMs - now.monoMs));
  }

  /** Why it is not held, as an error to throw. */
  notHeld(): LockLostError | ClosedError {
    if (this.#loss !== undefined) return this.#loss;
    if (this.#released !== undefined) return new ClosedError(`lock ${JSON.stringify(this.name)} has been released`);
    return lossError(this.name, this.#keeping.clock.monotonicMs() >= this.#maxHoldAtMs ? "max-hold" : "expired");
  }

  /**
   * Whether it was lost, asked when the work is done. Where the clocks disagree the engine is asked; an engine that
   * cannot be reached before the deadline means lost.
   */
  async lossAtEnd(): Promise<LockLostError | undefined> {
    if (this.#loss !== undefined || this.#released !== undefined || this.isHeld()) return this.#loss;
    if (isUncertain(this.#grant.lease(), instant(this.#keeping.clock))) {
      await this.#keeping.during(this.#grant.renew()).catch(() => {});
      if (this.isHeld()) return undefined;
    }
    return this.#loss ?? lossError(this.name, "expired");
  }

  async renew(): Promise<void> {
    if (this.#released !== undefined || this.#loss !== undefined) throw this.notHeld();
    await this.#keeping.during(this.#grant.renew());
    this.#schedule();
  }

  release(): Promise<void> {
    this.#released ??= this.#leave(this.#grant.release());
    return this.#released;
  }

  /** Gives back a hold that its caller never saw: no minimum hold applies. */
  discard(): Promise<void> {
    this.#released ??= this.#leave(this.#grant.discard());
    return this.#released;
  }

  /** Ends it from our side: the signal aborts, then the place is given back. */
  async end(reason: LossReason): Promise<void> {
    this.#lose(reason, false);
    await this.release();
  }

  /**
   * Notices when `handle` is garbage collected while held. Registering is dear, so it waits for the first look at the
   * clocks: most locks are released long before.
   */
  watchHandle(handle: object): void {
    this.#youngHandle = handle;
  }

  /** Looks at the clocks: a suspended machine shows here first. */
  checkClocks(): void {
    if (this.#youngHandle !== undefined) {
      forgotten.register(this.#youngHandle, this);
      this.#youngHandle = undefined;
    }
    if (isUncertain(this.#grant.lease(), instant(this.#keeping.clock))) this.#renewSoon();
  }

  /** The handle is gone and nobody can release it: the lease is left to run out. */
  forget(): void {
    if (this.#released !== undefined || this.#loss !== undefined) return;
    this.#forgotten = true;
    this.#schedule();
    process.emitWarning(
      `the handle of lock ${JSON.stringify(this.name)} was garbage collected while held; its lease now runs out. ` +
        "Release it, or use locks.request().",
      { code: "HOLDFAST_FORGOTTEN" },
    );
  }

  #leave(left: Promise<void>): Promise<void> {
    this.#stop();
    return this.#keeping.during(left);
  }

  #stop(): void {
    this.#alarm?.cancel();
    this.#alarm = undefined;
    this.#youngHandle = undefined;
    this.#keeping.remove(this);
  }

  #lose(reason: LossReason, gone: boolean): void {
    if (this.#released !== undefined) return;
    this.#gone ||= gone;
    if (this.#gone) this.#stop();
    if (this.#loss !== undefined) return;
    this.#loss = lossError(this.name, reason);
    this.#controller?.abort(this.#loss);
  }

  /** Sets the alarm for what comes next: a renewal, the abort before the deadline, the deadline, the longest hold. */
  #schedule(): void {
    if (this.#released !== undefined || this.#gone) return;
    const lease = this.#grant.lease();
    let nextMs = Math.min(deadlineMs(lease), this.#maxHoldAtMs);
    if (this.#loss === undefined) {
      nextMs -= this.#graceMs;
      if (this.#keeping.renews && this.#mayRenew())
        nextMs = Math.min(nextMs, Math.max(renewalDueMs(lease), this.#retryAtMs));
    }
    this.#alarm?.cancel();
    this.#alarm = this.#keeping.alarms.set(nextMs, () => this.#wake());
  }

  #wake(): void {
    const now = this.#keeping.clock.monotonicMs();
    const lease = this.#grant.lease();
    if (now >= this.#maxHoldAtMs) {
      void this.end("max-hold");
      return;
    }
    if (now >= deadlineMs(lease)) {
      this.#lose("expired", true);
      // Nobody relies on it any more; the server may be back before its lease ends there.
      void this.#grant.release();
      return;
    }
    if (this.#loss === undefined) {
      if (now >= this.#maxHoldAtMs - this.#graceMs) this.#lose("max-hold", false);
      else if (now >= deadlineMs(lease) - this.#graceMs) this.#lose("expired", false);
      else if (this.#keeping.renews && this.#mayRenew() && now >= Math.max(renewalDueMs(lease), this.#retryAtMs))
        this.#renewInTime();
    }
    this.#schedule();
  }

  #mayRenew(): boolean {
    return !this.#renewing && !this.#forgotten;
  }

  #renewSoon(): void {
    if (!this.#mayRenew() || this.#loss !== undefined || this.#released !== undefined) return;
    if (this.#keeping.clock.monotonicMs() < this.#retryAtMs) return;
    this.#renewInTime();
    this.#schedule();
  }

  #renewInTime(): void {
    this.#renewing = true;
    const settled = (): void => {
      this.#renewing = false;
      this.#schedule();
    };
    this.#grant.renew().then(
      () => {
        this.#retry = undefined;
        settled();
      },
      () => {
        // Tried again until the deadline; "not yours" has come through onLoss.
        this.#retry ??= new Backoff(this.#keeping.clock, FIRST_RETRY_MS, this.#longestRetryMs);
        this.#retryAtMs = this.#keeping.clock.monotonicMs() + this.#retry.next();
        settled();
      },
    );
  }
}
