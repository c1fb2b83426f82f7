/**
 * Several locks at once, all or none. Everybody takes them in the same order (the bytes of their names), so two that want
 * the same ones never wait for each other in a circle.
 */
import { ConfigError, LockTimeoutError } from "../engine/errors.ts";
import type { LockMode } from "../engine/queue.ts";
import { handleFor, type HeldLock } from "./held-lock.ts";
import type { Hold } from "./hold.ts";
import { checkName, type Wanted } from "./options.ts";
import type { Requests } from "./requests.ts";

/** Locks that are held together, and lost together: as soon as one of them is. */
export interface LockSet extends AsyncDisposable {
  /** Without doubles, in the order of their bytes, which is the order in which they were taken. */
  readonly names: readonly string[];
  readonly mode: LockMode;
  /** The locks themselves, in the order of `names`. */
  readonly locks: readonly HeldLock[];
  /** The fencing token of each name. */
  readonly tokens: ReadonlyMap<string, bigint>;
  /** Aborts when the first of them is lost, with its `LockLostError`. */
  readonly signal: AbortSignal;
  /** Whether all are held now. */
  isHeld(): boolean;
  /** Throws `LockLostError` (of the first that is lost) or `ClosedError` (released) unless all are held. */
  assertHeld(): void;
  /** Milliseconds to the earliest deadline; 0 when one is not held. */
  remainingMs(): number;
  /** Makes all leases full again. Cost: one round trip, as renewals travel together. */
  renew(): Promise<void>;
  /** Gives all of them back. Never throws for a lost one; twice is harmless. Cost: one round trip each, side by side. */
  release(): Promise<void>;
  toJSON(): { name: string; mode: LockMode; token: string }[];
}

class HeldLockSet implements LockSet {
  readonly names: readonly string[];
  readonly mode: LockMode;
  readonly locks: readonly HeldLock[];
  #signal: AbortSignal | undefined;

  constructor(mode: LockMode, locks: readonly HeldLock[]) {
    this.mode = mode;
    this.locks = locks;
    this.names = locks.map((lock) => lock.name);
  }

  get tokens(): ReadonlyMap<string, bigint> {
    return new Map(this.locks.map((lock) => [lock.name, lock.token]));
  }

  get signal(): AbortSignal {
    // `any` holds its sources weakly: a listener of ours would keep the handles of a forgotten set alive, and renewed.
    this.#signal ??= AbortSignal.any(this.locks.map((lock) => lock.signal));
    return this.#signal;
  }

  isHeld(): boolean {
    return this.locks.every((lock) => lock.isHeld());
  }

  assertHeld(): void {
    for (const lock of this.locks) lock.assertHeld();
  }

  remainingMs(): number {
    return Math.min(...this.locks.map((lock) => lock.remainingMs()));
  }

  async renew(): Promise<void> {
    await Promise.all(this.locks.map((lock) => lock.renew()));
  }

  async release(): Promise<void> {
    await Promise.all(this.locks.map((lock) => lock.release()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): { name: string; mode: LockMode; token: string }[] {
    return this.locks.map((lock) => lock.toJSON());
  }
}

const MOST_NAMES = 1_000;

/** Without doubles, in the order of their bytes in UTF-8: the same in every process and language. */
export function inByteOrder(names: readonly string[]): string[] {
  if (!Array.isArray(names)) throw new TypeError("names must be an array of lock names");
  if (names.length === 0 || names.length > MOST_NAMES) {
    throw new ConfigError(`acquireAll takes from 1 to ${MOST_NAMES} names, not ${names.length}`);
  }
  for (const name of names) checkName(name);
  const keyed = [...new Set(names)].map((name) => ({ name, bytes: Buffer.from(name) }));
  return keyed.sort((left, right) => Buffer.compare(left.bytes, right.bytes)).map(({ name }) => name);
}

/** Takes all of `names`, which are in order; on failure gives back those that it has, as if they had never been held. */
export async function acquireSet(requests: Requests, names: readonly string[], wanted: Wanted): Promise<LockSet> {
  const holds: Hold[] = [];
  const lost = new AbortController();
  const onLoss = (event: Event): void => lost.abort((event.target as AbortSignal).reason);
  try {
    await requests.inTime("", wanted, async (signal) => {
      const either = signal === undefined ? lost.signal : AbortSignal.any([signal, lost.signal]);
      for (const name of names) {
        // One attempt each when not to wait; otherwise the time-out is in the signal, and one for all.
        const waitMs = wanted.waitMs === 0 ? 0 : Infinity;
        const one = { ...wanted, waitMs, signal: either };
        const hold = await requests.nesting.waiting(name, requests.hold(name, one));
        if (hold === null) throw new LockTimeoutError(name, wanted.waitMs);
        holds.push(hold);
        hold.signal.addEventListener("abort", onLoss, { once: true });
      }
    });
    for (const hold of holds) {
      const loss = await hold.lossAtEnd();
      if (loss !== undefined) throw loss;
    }
    return new HeldLockSet(
      wanted.mode,
      holds.map((hold) => handleFor(hold)),
    );
  } catch (error) {
    // Behind the caller's back: it has its answer in time, however long the engine takes to confirm.
    for (const hold of holds) void requests.keeper.during(hold.discard());
    const busy = names[holds.length];
    throw error instanceof LockTimeoutError && busy !== undefined ? new LockTimeoutError(busy, wanted.waitMs) : error;
  } finally {
    for (const hold of holds) hold.signal.removeEventListener("abort", onLoss);
  }
}
