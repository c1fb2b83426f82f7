/** The commands that wait for an answer, and the time-out of each. One timer for all of them. */
import type { Clock, Timer } from "../engine/clock.ts";

/** One command. Adding and removing it costs a few assignments: it is an entry of a list itself. */
export class Waiting {
  readonly untilMs: number;
  readonly expire: () => void;
  /** @internal */
  before: Waiting | undefined;
  /** @internal */
  behind: Waiting | undefined;
  /** @internal */
  listed = false;

  constructor(untilMs: number, expire: () => void) {
    this.untilMs = untilMs;
    this.expire = expire;
  }
}

export class InFlight {
  readonly #clock: Clock;
  /** In the order in which they were added. */
  #first: Waiting | undefined;
  #last: Waiting | undefined;
  #timer: Timer | undefined;
  #timerAtMs = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `expire` in `timeoutMs`, unless it is removed before. `nowMs`: for who has just read the clock. */
  add(timeoutMs: number, expire: () => void, nowMs: number = this.#clock.monotonicMs()): Waiting {
    const waiting = new Waiting(nowMs + timeoutMs, expire);
    waiting.listed = true;
    waiting.before = this.#last;
    if (this.#last === undefined) this.#first = waiting;
    else this.#last.behind = waiting;
    this.#last = waiting;
    if (waiting.untilMs < this.#timerAtMs) this.#arm(waiting.untilMs, timeoutMs);
    return waiting;
  }

  /** The answer came. False when it has expired already. */
  remove(waiting: Waiting): boolean {
    if (!waiting.listed) return false;
    waiting.listed = false;
    const { before, behind } = waiting;
    if (before === undefined) this.#first = behind;
    else before.behind = behind;
    if (behind === undefined) this.#last = before;
    else behind.before = before;
    // One that is still known to a command without an answer would keep all of those behind it in memory.
    waiting.before = undefined;
    waiting.behind = undefined;
    return true;
  }

  /** Expires everything now. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAtMs = Infinity;
    this.#expire(Infinity);
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
    const nextMs = this.#expire(nowMs);
    if (nextMs < this.#timerAtMs) this.#arm(nextMs, Math.ceil(nextMs - nowMs));
  }

  /** Expires what is due. Returns when the next one is. */
  #expire(nowMs: number): number {
    const due: Waiting[] = [];
    let nextMs = Infinity;
    for (let each = this.#first; each !== undefined; each = each.behind) {
      if (each.untilMs > nowMs) nextMs = Math.min(nextMs, each.untilMs);
      else due.push(each);
    }
    for (const each of due) if (this.remove(each)) each.expire();
    return nextMs;
  }
}
