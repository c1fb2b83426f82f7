/** Leaving a queue: tried until the store confirms it or the lease has run out, in the background if need be. */
import type { Alarm, Alarms } from "./alarms.ts";
import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

export class Departures {
  readonly #clock: Clock;
  readonly #alarms: Alarms;
  readonly #underWay = new Set<Departure>();
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
    const departure = new Departure(this.#clock, this.#alarms, leave, () => this.#underWay.delete(departure));
    const done = departure.start(untilMs, () => this.#closed);
    this.#underWay.add(departure);
    return done;
  }

  /** Resolves when nothing is under way, at the latest after `patienceMs`. No new tries are made afterwards. */
  async finish(patienceMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const alarm = this.#alarms.set(this.#clock.monotonicMs() + patienceMs, resolve);
      void Promise.all(Array.from(this.#underWay, (each) => each.done)).then(() => {
        alarm.cancel();
        resolve();
      });
    });
    this.#closed = true;
  }
}

class Departure {
  readonly #clock: Clock;
  readonly #alarms: Alarms;
  readonly #leave: () => Promise<void>;
  readonly #onEnd: () => void;
  #backoff: Backoff | undefined;
  #end: Alarm | undefined;
  #resolve: (() => void) | undefined;
  #settled = false;
  done: Promise<void> = Promise.resolve();

  constructor(clock: Clock, alarms: Alarms, leave: () => Promise<void>, onEnd: () => void) {
    this.#clock = clock;
    this.#alarms = alarms;
    this.#leave = leave;
    this.#onEnd = onEnd;
  }

  start(untilMs: number, isClosed: () => boolean): Promise<void> {
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    // First of all: a store may be at work while we do the rest.
    this.#attempt(isClosed);
    this.#end = this.#alarms.set(untilMs, () => this.#settle());
    return this.done;
  }

  #attempt(isClosed: () => boolean): void {
    if (this.#settled) return;
    this.#leave().then(
      () => this.#settle(),
      () => {
        if (isClosed()) this.#settle();
        if (this.#settled) return;
        this.#backoff ??= new Backoff(this.#clock, FIRST_RETRY_MS, LONGEST_RETRY_MS);
        this.#alarms.set(this.#clock.monotonicMs() + this.#backoff.next(), () => this.#attempt(isClosed));
      },
    );
  }

  #settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#end?.cancel();
    this.#onEnd();
    this.#resolve?.();
  }
}
