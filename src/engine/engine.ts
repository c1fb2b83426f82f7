/** The contract between the locks (`lock/`) and an engine, which keeps the queues. Small on purpose. */
import type { Clock, Instant } from "./clock.ts";
import type { LossReason } from "./errors.ts";
import type { LockMode } from "./queue.ts";

/** What an engine promises, in code. Tests, documentation and `ConfigError`s go by these. */
export interface Traits {
  /** The engine's name: "memory", "sqlite", "redis" … */
  readonly engine: string;
  /** First in, first out, without barging. */
  readonly fair: boolean;
  /** Offers shared mode. */
  readonly shared: boolean;
  /** Offers limits: semaphores. */
  readonly limits: boolean;
  /** Offers `steal`. */
  readonly steal: boolean;
  /** Offers `minHoldMs`. */
  readonly minHold: boolean;
  /** A lease of its own per request, or the lease of the session with the server (`ttlMs` then sets nothing). */
  readonly lease: "lease" | "session";
  /** How waiters learn that they are granted: told by the engine, or by asking again at growing intervals. */
  readonly bells: "push" | "recheck";
  /** Which processes may share one lock. */
  readonly scope: "process" | "machine" | "network";
  /** A held lock survives a restart of the server (with its data). */
  readonly survivesRestart: boolean;
  /** A held lock survives the loss of the server that granted it, as far as the engine's settings say. */
  readonly survivesFailover: boolean;
  /** Exclusion survives a jump of the judging clock. */
  readonly survivesClockJump: boolean;
}

/** Who asks; shown by `query()`. */
export interface Client {
  readonly clientId: string;
  readonly host: string;
  readonly pid: number;
}

/** One wish for one name, checked by the caller. */
export interface RequestSpec {
  readonly name: string;
  readonly mode: LockMode;
  /** Shared requests: how many may be held at once; `Infinity` for readers. Exclusive ones: 1. */
  readonly limit: number;
  readonly ttlMs: number;
  readonly graceMs: number;
  readonly minHoldMs: number;
  /** False: `request` resolves to null when the lock is not free, and leaves nothing behind. */
  readonly wait: boolean;
  /** End all holders and go to the front. */
  readonly steal: boolean;
  readonly client: Client;
  /** Published with the request: whoever may `inspect` the name reads it. At most `LONGEST_VALUE_BYTES`. Default: none. */
  readonly value?: string | undefined;
}

/**
 * The life of a grant as its holder may rely on it: `ttlMs` from the instant before the last acknowledged command
 * was sent. `remainingMs` in lease.ts turns it into a deadline.
 */
export interface Lease {
  readonly from: Instant;
  readonly ttlMs: number;
}

/** A held request, as the engine hands it over. */
export interface Grant {
  /** Fencing token; grows with every grant of the name. */
  readonly token: bigint;
  /** The lease as last confirmed. */
  lease(): Lease;
  /**
   * Makes the lease full again. Resolves when confirmed; rejects with `EngineUnavailableError` when it could not be
   * (it may be tried again), or with `LockLostError` when the request is ours no more (`onLoss` is told as well).
   */
  renew(): Promise<void>;
  /**
   * Leaves the queue; `minHoldMs` is kept. Resolves when the engine has confirmed it or the lease has run out,
   * whichever is first. Never rejects, may be called again.
   */
  release(): Promise<void>;
  /** Like release, for a grant that never reached its caller: `minHoldMs` does not apply. */
  discard(): Promise<void>;
  /** Tells when the engine says that the request is ours no more. At most once; not after `release`. */
  onLoss(listener: (reason: LossReason) => void): void;
}

/** A request as others see it. */
export interface QueueEntry {
  readonly mode: LockMode;
  readonly limit: number;
  /** The token once held, null while pending. */
  readonly token: bigint | null;
  readonly client: Client;
  /** Wall clock of the engine, ms since 1970: when it was granted, or queued while pending. */
  readonly sinceMs: number;
  /** What is left of its lease, on the engine's clock; null on session engines. */
  readonly remainingMs: number | null;
  /** The `value` of its request; absent when it published none. */
  readonly value?: string | undefined;
}

/** The queue of a name, in order: held ones first. A place kept by `minHoldMs` without an owner is listed as held. */
export type Queue = readonly QueueEntry[];

export interface Engine {
  readonly traits: Traits;
  /** Read by the locks on top, so that both live in the same time. */
  readonly clock: Clock;
  /** Rejects when the server cannot be reached or its settings are wrong. Called once, before all else. */
  open(): Promise<void>;
  /**
   * Waits in the engine until granted. Resolves to null when busy and not to wait. Rejects with the signal's reason
   * when it aborts first; nothing then stays behind.
   */
  request(spec: RequestSpec, signal?: AbortSignal): Promise<Grant | null>;
  inspect(name: string): Promise<Queue>;
  /** The names that have a queue, in no order; `prefix` filters. */
  names(prefix?: string): AsyncIterable<string>;
  /**
   * Optional: calls `changed` when the held part of the queue of `name` may have changed; a hint, may come too often,
   * may be lost. Must be cheap while nobody watches. Returns what ends it. An engine without it is asked now and then.
   */
  watch?: ((name: string, changed: () => void) => () => void) | undefined;
  /** Ends the request that holds `name` with `token`. False when there is none. */
  evict(name: string, token: bigint): Promise<boolean>;
  /** Withdraws what is pending (it rejects with `ClosedError`), releases nothing that is held, lets go of the server. Idempotent. */
  close(): Promise<void>;
}

export type { LockMode };
