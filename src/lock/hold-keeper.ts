/** The holds of one lock manager: their alarms, the watch on the clocks, and what keeps the process alive. */
import { Alarms } from "../engine/alarms.ts";
import type { Clock, Timer } from "../engine/clock.ts";
import type { LossReason } from "../engine/errors.ts";
import type { Hold, Keeping } from "./hold.ts";

/** How often the two clocks are compared while something is held. A suspended machine is noticed this soon after it wakes. */
const CLOCK_CHECK_MS = 1_000;
const END_PATIENCE_MS = 3_000;

export class HoldKeeper implements Keeping {
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly renews: boolean;
  readonly #holds = new Set<Hold>();
  #underWay = 0;
  #alive: Timer | undefined;
  #checkingClocks = false;

  constructor(clock: Clock, renews: boolean) {
    this.clock = clock;
    this.alarms = new Alarms(clock);
    this.renews = renews;
  }

  add(hold: Hold): void {
    this.#holds.add(hold);
    if (!this.#checkingClocks) this.#checkClocksLater();
  }

  remove(hold: Hold): void {
    this.#holds.delete(hold);
  }

  during<T>(work: Promise<T>): Promise<T> {
    if (this.#underWay++ === 0) this.#alive = this.clock.stayAlive();
    work.then(this.#done, this.#done);
    return work;
  }

  readonly #done = (): void => {
    if (--this.#underWay > 0) return;
    this.#alive?.cancel();
    this.#alive = undefined;
  };

  /**
   * Ends all holds; resolves when the engine has confirmed it, or after a few seconds: an engine that does not answer
   * keeps no program from ending, its leases run out by themselves.
   */
  async endAll(reason: LossReason): Promise<void> {
    const all = Promise.all([...this.#holds].map((hold) => hold.end(reason)));
    await new Promise<void>((resolve) => {
      const alarm = this.alarms.set(this.clock.monotonicMs() + END_PATIENCE_MS, resolve);
      void all.finally(() => {
        alarm.cancel();
        resolve();
      });
    });
  }

  close(): void {
    this.alarms.clear();
  }

  #checkClocksLater(): void {
    this.#checkingClocks = true;
    this.alarms.set(this.clock.monotonicMs() + CLOCK_CHECK_MS, () => {
      this.#checkingClocks = false;
      for (const hold of this.#holds) hold.checkClocks();
      if (this.#holds.size > 0) this.#checkClocksLater();
    });
  }
}
