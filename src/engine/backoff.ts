/** Growing, random waits between two tries. */
import type { Clock } from "./clock.ts";

/** Doubles from `firstMs` to `longestMs`; each wait is drawn between half of that and all of it, so that clients spread. */
export class Backoff {
  readonly #clock: Clock;
  readonly #firstMs: number;
  readonly #longestMs: number;
  #tries = 0;

  constructor(clock: Clock, firstMs: number, longestMs: number) {
    this.#clock = clock;
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
  }

  next(): number {
    const full = Math.min(this.#firstMs * 2 ** this.#tries, this.#longestMs);
    this.#tries = Math.min(this.#tries + 1, 30);
    return full * (0.5 + 0.5 * this.#clock.random());
  }
}
