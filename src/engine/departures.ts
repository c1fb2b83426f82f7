/** Leaving a queue: tried until the store confirms it or the lease has run out, in the background if need be. */
import { type Alarms } from "./alarms.ts";
import { Backoff } from "./backoff.ts";
import { type Clock } from "./clock.ts";

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

export class Departures {
  readonly #clock: Clock;
  readonly #alarms: Alarms;
  readonly #underWay = new Set<Promise<void>>();
  #closed = false;

  constructor(clock: Clock, alarms: Alarms) {
    this.#clock = clock;
    this.#alarms = alarms;
  }

  /**
   * Calls `leave` until it resolves; resolves then, or at `untilMs` (monotonic) when the lease has ended by itself.
   * Never rejects.
   */
  depart(leave: () => Promise<void>, untilMs: number): Promise<void> {
    const departure = this.#try(leave, untilMs).finally(() => this.#underWay.delete(departure));
    this.#underWay.add(departure);
    return departure;
  }

  /** Resolves when nothing is under way, at the latest after `patienceMs`. No new tries are made afterwards. */
  async finish(patienceMs: number): Promise<void> {
    const all = Promise.all(this.#underWay);
    await new Promise<void>((resolve) => {
      const alarm = this.#alarms.set(this.#clock.monotonicMs() + patienceMs, resolve);
      void all.then(() => {
        alarm.cancel();
        resolve();
      });
    });
    this.#closed = true;
  }

  #try(leave: () => Promise<void>, untilMs: number): Promise<void> {
    return new Promise((resolve) => {
      let settled = false;
      const settle = (): void => {
        settled = true;
        end.cancel();
        resolve();
      };
      const end = this.#alarms.set(untilMs, settle);
      const backoff = new Backoff(this.#clock, FIRST_RETRY_MS, LONGEST_RETRY_MS);
      const attempt = (): void => {
        if (settled) return;
        leave().then(settle, () => {
          if (this.#closed) settle();
          if (!settled) this.#alarms.set(this.#clock.monotonicMs() + backoff.next(), attempt);
        });
      };
      attempt();
    });
  }
}
