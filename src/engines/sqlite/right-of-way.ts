/**
 * Nobody starves at the write lock. SQLite hands it to whoever asks at the right moment, so many busy processes could keep
 * one out by chance. Whoever has waited for `CLAIM_AFTER_MS` puts up a sign (an empty file beside the lock file); all who
 * see it begin no new transaction until it is down, for `HOLD_OFF_MS` at most. So somebody who has waited for so long only
 * competes with those who have waited as long.
 */
import { closeSync, existsSync, openSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../engine/clock.ts";

export const CLAIM_AFTER_MS = 40;
const HOLD_OFF_MS = 20;
/** Looking costs a system call, a transaction a dozen. */
const LOOK_EVERY_MS = 1;
/** A sign that stays for so long was left behind by somebody who was killed. */
const ABANDONED_AFTER_MS = 1_000;

export class RightOfWay {
  readonly #clock: Clock;
  readonly #sign: string;
  #lookedAtMs = -Infinity;
  #seenSinceMs: number | undefined;
  #heldOffSinceMs: number | undefined;
  #claims = false;
  #ours = false;

  constructor(clock: Clock, folder: string) {
    this.#clock = clock;
    this.#sign = join(folder, "waiting");
  }

  /** Whether to let somebody else go first. Asked before each try. */
  mustYield(): boolean {
    if (this.#claims) return false;
    const now = this.#clock.monotonicMs();
    if (now - this.#lookedAtMs < LOOK_EVERY_MS && this.#heldOffSinceMs === undefined) return false;
    this.#lookedAtMs = now;
    if (!existsSync(this.#sign)) {
      this.#seenSinceMs = undefined;
      this.#heldOffSinceMs = undefined;
      return false;
    }
    this.#seenSinceMs ??= now;
    if (now - this.#seenSinceMs > ABANDONED_AFTER_MS) this.#takeDown();
    this.#heldOffSinceMs ??= now;
    if (now - this.#heldOffSinceMs < HOLD_OFF_MS) return true;
    this.#heldOffSinceMs = undefined;
    return false;
  }

  /** We have waited for too long. */
  claim(): void {
    this.#claims = true;
    if (this.#ours) return;
    try {
      closeSync(openSync(this.#sign, "wx", 0o600));
      this.#ours = true;
    } catch {
      // Another one's sign is up, which serves us as well; or there is no room for one, then chance has to do.
    }
  }

  /** We have had our turn. */
  served(): void {
    this.#claims = false;
    if (this.#ours) this.#takeDown();
    this.#ours = false;
  }

  #takeDown(): void {
    this.#seenSinceMs = undefined;
    try {
      unlinkSync(this.#sign);
    } catch {
      // Down already.
    }
  }
}
