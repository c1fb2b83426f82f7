/** What is held while COMMAND runs: a lock, a permit, or several locks at once. */
import type { AcquireOptions, HeldLock, LockManager } from "../index.ts";
import type { RunOptions } from "./run-options.ts";

/** As the supervisor needs it. */
export interface Holding {
  readonly signal: AbortSignal;
  /** Of NAME: COMMAND's HOLDFAST_TOKEN. */
  readonly token: bigint;
  /** Of everything that is held. */
  readonly tokens: ReadonlyMap<string, bigint>;
  isHeld(): boolean;
  remainingMs(): number;
  renew(): Promise<void>;
}

/** Waits, runs `work`, gives back. Errors: those of `LockManager.request`, `LockLostError` after a loss among them. */
export async function holdWhile<T>(
  locks: LockManager,
  { name, also, permits }: RunOptions,
  options: AcquireOptions,
  work: (holding: Holding) => Promise<T>,
): Promise<T> {
  const withOne = (lock: HeldLock): Promise<T> => work(holdingOne(lock));
  if (permits !== undefined) {
    const { mode: _, ...rest } = options;
    return await locks.semaphore(name, { ...rest, permits }).request(withOne);
  }
  if (also.length === 0) return await locks.request(name, { ...options, ifAvailable: false }, withOne);
  const set = await locks.acquireAll([name, ...also], options);
  try {
    const holding: Holding = {
      signal: set.signal,
      token: set.tokens.get(name) ?? 0n,
      tokens: set.tokens,
      isHeld: () => set.isHeld(),
      remainingMs: () => set.remainingMs(),
      renew: () => set.renew(),
    };
    const result = await work(holding);
    // The clocks may disagree after a suspend: then the engine is asked.
    if (!set.isHeld()) await set.renew().catch(() => {});
    set.signal.throwIfAborted();
    set.assertHeld();
    return result;
  } finally {
    await set.release();
  }
}

function holdingOne(lock: HeldLock): Holding {
  return {
    signal: lock.signal,
    token: lock.token,
    tokens: new Map([[lock.name, lock.token]]),
    isHeld: () => lock.isHeld(),
    remainingMs: () => lock.remainingMs(),
    renew: () => lock.renew(),
  };
}
