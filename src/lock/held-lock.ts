/** The handle that the caller gets. A thin face of a `Hold`, so that a forgotten handle can be noticed. */
import type { LockMode } from "../engine/queue.ts";
import type { Hold } from "./hold.ts";

export interface HeldLock extends AsyncDisposable {
  readonly name: string;
  readonly mode: LockMode;
  /** Fencing token: grows with every grant of this name. Send it along with every write that the lock protects. */
  readonly token: bigint;
  /** Aborts on loss, with a `LockLostError` as its reason, `graceMs` before the deadline at the latest. Not on release. */
  readonly signal: AbortSignal;
  /** Whether the lock is held now, computed from the clocks. False while the clocks disagree (after a suspend). */
  isHeld(): boolean;
  /** Throws what `isHeld` would deny: `LockLostError`, or `ClosedError` after release. */
  assertHeld(): void;
  /** Milliseconds to the deadline; 0 when not held. */
  remainingMs(): number;
  /**
   * Makes the lease full again now. Not needed in ordinary use: that happens by itself.
   * Errors: `EngineUnavailableError`, `LockLostError`. Cost: one round trip.
   */
  renew(): Promise<void>;
  /**
   * Gives the lock back. Resolves when the engine has confirmed it or the lease has run out. Never throws for a lost
   * lock; twice is harmless. Cost: one round trip.
   */
  release(): Promise<void>;
  toJSON(): { name: string; mode: LockMode; token: string };
}

class Handle implements HeldLock {
  readonly #hold: Hold;
  readonly #stop: AbortSignal | undefined;
  #either: AbortSignal | undefined;

  constructor(hold: Hold, stop: AbortSignal | undefined) {
    this.#hold = hold;
    this.#stop = stop;
  }

  get name(): string {
    return this.#hold.name;
  }

  get mode(): LockMode {
    return this.#hold.mode;
  }

  get token(): bigint {
    return this.#hold.token;
  }

  get signal(): AbortSignal {
    if (this.#stop === undefined) return this.#hold.signal;
    this.#either ??= AbortSignal.any([this.#hold.signal, this.#stop]);
    return this.#either;
  }

  isHeld(): boolean {
    return this.#hold.isHeld();
  }

  assertHeld(): void {
    if (!this.#hold.isHeld()) throw this.#hold.notHeld();
  }

  remainingMs(): number {
    return this.#hold.remainingMs();
  }

  renew(): Promise<void> {
    return this.#hold.renew();
  }

  release(): Promise<void> {
    return this.#hold.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#hold.release();
  }

  toJSON(): { name: string; mode: LockMode; token: string } {
    return { name: this.name, mode: this.mode, token: String(this.token) };
  }
}

/** `stop` aborts the handle's signal too. */
export function handleFor(hold: Hold, stop?: AbortSignal): HeldLock {
  const handle = new Handle(hold, stop);
  hold.watchHandle(handle);
  return handle;
}
