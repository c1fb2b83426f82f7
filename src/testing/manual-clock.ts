/**
 * A clock that stands still until a test moves it. Hand it to the memory engine and every lease, wait and minimum hold
 * runs on it, so a test of a program that locks needs no real waiting and gives the same result each time.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { Clock, Timer } from "../engine/clock.ts";

export interface ManualClockOptions {
  /** Monotonic milliseconds at the start. Default 0. */
  readonly monotonicMs?: number | undefined;
  /** Wall-clock milliseconds since 1970 at the start. Default: the first instant of 2025. */
  readonly wallMs?: number | undefined;
  /** Where randomness starts; the same seed draws the same numbers and bytes. Default 1. */
  readonly seed?: number | undefined;
}

interface ManualTimer {
  readonly dueMs: number;
  readonly run: () => void;
}

const START_OF_2025_MS = 1_735_689_600_000;
/** More timers than this at one instant are a program that re-arms a timer of 0 ms for ever. */
const MOST_TIMERS_AT_ONCE = 100_000;

/**
 * ```ts
 * const clock = new ManualClock();
 * const locks = await connect(memory({ clock }));
 * const lock = await locks.acquire("report", { maxHoldMs: 60_000 });
 * await clock.advance(60_000);
 * lock.isHeld(); // false
 * ```
 */
export class ManualClock implements Clock {
  #monotonicMs: number;
  #wallMs: number;
  #random: number;
  #stayAlive = 0;
  /** In the order in which they were set: the first of those that are due earliest fires first. */
  readonly #timers = new Set<ManualTimer>();

  constructor(options: ManualClockOptions = {}) {
    this.#monotonicMs = options.monotonicMs ?? 0;
    this.#wallMs = options.wallMs ?? START_OF_2025_MS;
    this.#random = options.seed ?? 1;
  }

  /** How many timers are set. Zero when nothing of the program under test waits any more. */
  get timers(): number {
    return this.#timers.size;
  }

  /** How many parts of the program would keep a real process alive now. */
  get keptAliveBy(): number {
    return this.#stayAlive;
  }

  /**
   * Moves both clocks on by `ms`, fires every timer that falls due on the way in its order and at its own time, and
   * lets promises settle before, between and after them. Whatever a timer throws rejects here.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0)) throw new RangeError("a monotonic clock goes forward");
    const endMs = this.#monotonicMs + ms;
    let fired = 0;
    await this.settle();
    for (let next = this.#earliest(endMs); next !== undefined; next = this.#earliest(endMs)) {
      fired = next.dueMs > this.#monotonicMs ? 0 : fired + 1;
      if (fired > MOST_TIMERS_AT_ONCE) throw new Error(`${MOST_TIMERS_AT_ONCE} timers fired in one instant`);
      this.#move(Math.max(next.dueMs - this.#monotonicMs, 0));
      this.#timers.delete(next);
      next.run();
      await this.settle();
    }
    this.#move(endMs - this.#monotonicMs);
    await this.settle();
  }

  /** Lets everything happen that needs no time to pass. `advance(0)` also fires the timers that are due. */
  async settle(): Promise<void> {
    await turn(); // all promise jobs have run by then, however long their chain
  }

  /** Like `advance` in one step, as after a blocked event loop: timers fire late, at the end of it. */
  async block(ms: number): Promise<void> {
    this.#move(ms);
    await this.advance(0);
  }

  /** A suspended machine, or a wall clock set by hand: only the wall clock moves, by `ms`, forward or back. */
  jumpWall(ms: number): void {
    this.#wallMs += ms;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  after(delayMs: number, run: () => void): Timer {
    const timer = { dueMs: this.#monotonicMs + Math.max(delayMs, 0), run };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  stayAlive(): Timer {
    let cancelled = false;
    this.#stayAlive++;
    return {
      cancel: () => {
        if (!cancelled) this.#stayAlive--;
        cancelled = true;
      },
    };
  }

  random(): number {
    return this.#draw() / 2 ** 32;
  }

  randomBytes(size: number): Uint8Array {
    return Uint8Array.from({ length: size }, () => this.#draw() >>> 24);
  }

  /** 32 bits: the generator "mulberry32" (Tommy Ettinger, public domain). */
  #draw(): number {
    this.#random = (this.#random + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#random ^ (this.#random >>> 15), this.#random | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  #move(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  #earliest(untilMs: number): ManualTimer | undefined {
    let earliest: ManualTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && (earliest === undefined || timer.dueMs < earliest.dueMs)) earliest = timer;
    }
    return earliest;
  }
}
