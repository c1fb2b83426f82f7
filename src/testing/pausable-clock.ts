/** The machine's clock with timers that can be held back: a stand-in for a process that is stopped or killed. */
import { systemClock, type Clock, type Timer } from "../engine/clock.ts";

export class PausableClock implements Clock {
  readonly #late: { readonly run: () => void; cancelled: boolean }[] = [];
  #resumed: Promise<void> | undefined;
  #resume: (() => void) | undefined;

  /** From now on no timer fires; time goes on, as it does for a stopped process. */
  pause(): void {
    this.#resumed ??= new Promise((resolve) => (this.#resume = resolve));
  }

  /** Fires, in order, what fell due meanwhile. */
  resume(): void {
    this.#resume?.();
    this.#resumed = undefined;
    this.#resume = undefined;
    for (const timer of this.#late.splice(0)) if (!timer.cancelled) timer.run();
  }

  get paused(): boolean {
    return this.#resumed !== undefined;
  }

  /** Resolves when the clock is not paused. */
  async running(): Promise<void> {
    await this.#resumed;
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  wallMs(): number {
    return systemClock.wallMs();
  }

  after(delayMs: number, run: () => void): Timer {
    const late = { run, cancelled: false };
    const timer = systemClock.after(delayMs, () => {
      if (this.#resumed === undefined) run();
      else this.#late.push(late);
    });
    return {
      cancel: () => {
        late.cancelled = true;
        timer.cancel();
      },
    };
  }

  stayAlive(): Timer {
    return systemClock.stayAlive();
  }

  random(): number {
    return systemClock.random();
  }

  randomBytes(size: number): Uint8Array {
    return systemClock.randomBytes(size);
  }
}

/** The machine's clock whose wall clock can be set: what a suspended machine, or a hand on the clock, looks like. */
export class AdjustableClock extends PausableClock {
  #offsetMs: number;

  /** @param offsetMs By how much the wall clock is wrong from the start. */
  constructor(offsetMs = 0) {
    super();
    this.#offsetMs = offsetMs;
  }

  jumpWall(ms: number): void {
    this.#offsetMs += ms;
  }

  override wallMs(): number {
    return super.wallMs() + this.#offsetMs;
  }
}
