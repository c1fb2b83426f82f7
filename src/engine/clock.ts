/**
 * The one seam for time, timers and randomness. Nothing else in the library reads a clock, sets a timer or draws a
 * random number, so a test or a simulation can own all three by handing over another `Clock`.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** One moment, read from both clocks of this machine. Instants are compared only with instants of the same clock. */
export interface Instant {
  /** Monotonic milliseconds; the origin means nothing. Stops while the machine is suspended. */
  readonly monoMs: number;
  /** Wall-clock milliseconds since 1970. May jump; used only to notice a suspended machine. */
  readonly wallMs: number;
}

export interface Timer {
  /** Stops the timer; harmless when it has fired already. */
  cancel(): void;
}

export interface Clock {
  /** Monotonic milliseconds, with fractions. The system clock's are the same for all processes since the machine booted. */
  monotonicMs(): number;
  /** Wall-clock milliseconds since 1970. */
  wallMs(): number;
  /** Calls `run` once, `delayMs` from now at the earliest. The timer never keeps the process alive. */
  after(delayMs: number, run: () => void): Timer;
  /** Keeps the process alive until cancelled. */
  stayAlive(): Timer;
  /** A number in [0, 1). Good enough for back-off, not for identities. */
  random(): number;
  /** `size` bytes nobody can guess. */
  randomBytes(size: number): Uint8Array;
}

/** Node's longest timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const RANDOM_POOL_BYTES = 4096;

/**
 * The kernel's generator, read as a file where it is one: loading node:crypto takes longer than the first lock of a
 * short program.
 */
function fillRandom(bytes: Buffer): Buffer {
  try {
    const file = openSync("/dev/urandom", "r");
    try {
      if (fstatSync(file).isCharacterDevice() && readSync(file, bytes) === bytes.length) return bytes;
    } finally {
      closeSync(file);
    }
  } catch {
    // Windows, or a root directory without devices.
  }
  return process.getBuiltinModule("node:crypto").randomFillSync(bytes);
}

class SystemClock implements Clock {
  readonly #pool = Buffer.allocUnsafe(RANDOM_POOL_BYTES);
  #poolUsed = RANDOM_POOL_BYTES;
  #alive: NodeJS.Timeout | undefined;
  #aliveCount = 0;

  monotonicMs(): number {
    // Not performance.now(), which counts from the start of this thread: processes that share a file share this clock.
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1000 + nanoseconds / 1e6;
  }

  wallMs(): number {
    return Date.now();
  }

  after(delayMs: number, run: () => void): Timer {
    const timer = setTimeout(run, Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS));
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  }

  stayAlive(): Timer {
    // One timer for all, referenced while somebody needs it: making a timer costs more than a lock.
    this.#alive ??= setInterval(() => {}, LONGEST_TIMER_MS).unref();
    if (this.#aliveCount++ === 0) this.#alive.ref();
    let cancelled = false;
    return {
      cancel: () => {
        if (cancelled) return;
        cancelled = true;
        if (--this.#aliveCount === 0) this.#alive?.unref();
      },
    };
  }

  random(): number {
    return Math.random();
  }

  randomBytes(size: number): Uint8Array {
    if (size > RANDOM_POOL_BYTES) return fillRandom(Buffer.allocUnsafe(size));
    // One call to the crypto generator serves many owners: drawing 16 bytes at a time costs more than a lock.
    if (this.#poolUsed + size > RANDOM_POOL_BYTES) {
      fillRandom(this.#pool);
      this.#poolUsed = 0;
    }
    const from = this.#poolUsed;
    this.#poolUsed += size;
    return Buffer.from(this.#pool.subarray(from, this.#poolUsed));
  }
}

/** The clocks, timers and randomness of this machine. */
export const systemClock: Clock = new SystemClock();

/** Reads of both clocks that are further apart than this are made again. */
const READ_TOGETHER_MS = 1;
const READ_TRIES = 5;

/** Both clocks at one moment: a process that is preempted between the two reads would look like a suspended machine. */
export function instant(clock: Clock): Instant {
  let monoMs = clock.monotonicMs();
  for (let tries = 1; ; tries++) {
    const wallMs = clock.wallMs();
    const afterMs = clock.monotonicMs();
    if (afterMs - monoMs < READ_TOGETHER_MS || tries === READ_TRIES) return { monoMs, wallMs };
    monoMs = afterMs;
  }
}

/** Resolves after `delayMs` on `clock`; rejects with the signal's reason when `signal` aborts first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
