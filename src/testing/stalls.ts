/** Notices when this process did not get its turn: a machine that is too busy to keep leases alive proves nothing. */
import { systemClock, type Timer } from "../engine/clock.ts";

const BEAT_MS = 20;

/** Measures, from its making to its end, the longest time for which the event loop did not turn. */
export class StallWatch {
  #longestMs = 0;
  #lastMs = systemClock.monotonicMs();
  #timer: Timer;

  constructor() {
    this.#timer = this.#next();
  }

  /** Ends the watch; the longest stall in ms. */
  end(): number {
    this.#beat();
    this.#timer.cancel();
    return this.#longestMs;
  }

  #next(): Timer {
    return systemClock.after(BEAT_MS, () => {
      this.#beat();
      this.#timer = this.#next();
    });
  }

  #beat(): void {
    const nowMs = systemClock.monotonicMs();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastMs - BEAT_MS);
    this.#lastMs = nowMs;
  }
}
