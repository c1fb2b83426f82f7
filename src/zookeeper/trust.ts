/**
 * How long the session is ours as far as we can know: from the instant before the newest answered packet was sent, for
 * as long as no server can have ended the session. No clock of a server is compared with ours.
 */
import { type Clock, instant, type Instant, type Timer } from "../engine/clock.ts";

export class Trust {
  readonly #clock: Clock;
  readonly #onLapse: () => void;
  #trustMs = 0;
  #confirmedAt: Instant;
  #timer: Timer | undefined;
  #lapsed = false;

  /** `onLapse`: the deadline has passed without a confirmation. Called again only after another one. */
  constructor(clock: Clock, onLapse: () => void) {
    this.#clock = clock;
    this.#onLapse = onLapse;
    this.#confirmedAt = instant(clock);
  }

  get lapsed(): boolean {
    return this.#lapsed;
  }

  get confirmedAt(): Instant {
    return this.#confirmedAt;
  }

  /** A server answered what was sent after `sentAt`. `trustMs` is given when it changes. */
  confirm(sentAt: Instant, trustMs: number = this.#trustMs): void {
    this.#trustMs = trustMs;
    if (sentAt.monoMs > this.#confirmedAt.monoMs) this.#confirmedAt = sentAt;
    this.#lapsed = false;
    if (this.#timer === undefined) this.#arm();
  }

  /** Elapsed time is the larger of what the two clocks say: a suspended machine stops the monotonic one. */
  remainingMs(): number {
    const { monoMs, wallMs } = this.#confirmedAt;
    const elapsed = Math.max(this.#clock.monotonicMs() - monoMs, this.#clock.wallMs() - wallMs);
    return this.#trustMs - elapsed;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #arm(): void {
    this.#timer = this.#clock.after(Math.ceil(this.remainingMs()), () => {
      this.#timer = undefined;
      if (this.remainingMs() > 0) this.#arm();
      else {
        this.#lapsed = true;
        this.#onLapse();
      }
    });
  }
}
