/** The commands that wait for an answer, and the time-out of each. One timer for all of them. */
import type { Clock, Timer } from "../engine/clock.ts";

export interface Waiting {
  readonly untilMs: number;
  readonly expire: () => void;
}

export class InFlight {
  readonly #clock: Clock;
  /** In the order in which they were added. */
  readonly #waiting = new Set<Waiting>();
  #timer: Timer | undefined;
  #timerAtMs = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `expire` in `timeoutMs`, unless it is removed before. `nowMs`: for who has just read the clock. */
  add(timeoutMs: number, expire: () => void, nowMs: number = this.#clock.monotonicMs()): Waiting {
    const waiting = { untilMs: nowMs + timeoutMs, expire };
    this.#waiting.add(waiting);
    if (waiting.untilMs < this.#timerAtMs) this.#arm(waiting.untilMs, timeoutMs);
    return waiting;
  }

  /** The answer came. False when it has expired already. */
  remove(waiting: Waiting): boolean {
    return this.#waiting.delete(waiting);
  }

  /** Expires everything now. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAtMs = Infinity;
    for (const waiting of this.#waiting) waiting.expire();
    this.#waiting.clear();
  }

  #arm(atMs: number, delayMs: number): void {
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    this.#timer = this.#clock.after(delayMs, () => this.#sweep());
  }

  /** The timer is not moved when a command is answered: it looks when it fires, and is set again for what is left. */
  #sweep(): void {
    this.#timer = undefined;
    this.#timerAtMs = Infinity;
    const nowMs = this.#clock.monotonicMs();
    let nextMs = Infinity;
    for (const waiting of this.#waiting) {
      if (waiting.untilMs > nowMs) nextMs = Math.min(nextMs, waiting.untilMs);
      else {
        this.#waiting.delete(waiting);
        waiting.expire();
      }
    }
    if (nextMs < this.#timerAtMs) this.#arm(nextMs, Math.ceil(nextMs - nowMs));
  }
}
