/** What a request proposes as its token: our wall clock in µs, or more where a name's counter is known to be ahead of it. */
import type { Clock } from "../../engine/clock.ts";

/** Names whose counters are ahead of our clock. There are few of them: only where another client's clock is ahead. */
const MOST_NAMES = 10_000;

export class Proposals {
  readonly #clock: Clock;
  readonly #ahead = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The proposal for the next ballot. With clocks in step all nodes take it, and one round trip is enough. */
  next(name: string): number {
    return Math.max(this.#clockMicros(), (this.#ahead.get(name) ?? 0) + 1);
  }

  /** A node's counter for `name` stands at `counter`. */
  heard(name: string, counter: number): void {
    if (counter > this.#clockMicros()) {
      if (this.#ahead.size >= MOST_NAMES) this.#ahead.clear();
      this.#ahead.set(name, Math.max(counter, this.#ahead.get(name) ?? 0));
    } else if (this.#ahead.size > 0) {
      this.#ahead.delete(name);
    }
  }

  #clockMicros(): number {
    return Math.floor(this.#clock.wallMs() * 1_000);
  }
}
