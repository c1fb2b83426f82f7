/**
 * A world in one seed: time, processes with clocks of their own, pauses, and messages that are late, lost or doubled.
 * The same seed gives the same world, event for event.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { Clock, Timer } from "../../engine/clock.ts";

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

const START_WALL_MS = 1_750_000_000_000;

export class World {
  nowMs = 0;
  events = 0;
  #seed: number;
  #order = 0;
  readonly #heap: Event[] = [];

  constructor(seed: number) {
    this.#seed = (seed * 2_654_435_761) >>> 0 || 1;
  }

  /** A number in [0, 1): xorshift32, by G. Marsaglia. */
  random(): number {
    let x = this.#seed;
    x ^= x << 13;
    x >>>= 0;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#seed = x >>> 0;
    return this.#seed / 2 ** 32;
  }

  chance(share: number): boolean {
    return this.random() < share;
  }

  between(least: number, most: number): number {
    return least + this.random() * (most - least);
  }

  /** Runs `run` in `delayMs` of this world's time. */
  after(delayMs: number, run: () => void): void {
    const event = { atMs: this.nowMs + Math.max(0, delayMs), order: this.#order++, run };
    const heap = this.#heap;
    let index = heap.length;
    for (; index > 0; index = (index - 1) >> 1) {
      const parent = heap[(index - 1) >> 1];
      if (parent === undefined || !before(event, parent)) break;
      heap[index] = parent;
    }
    heap[index] = event;
  }

  /** Lives until `untilMs`; `observe` is called after every event, when all promises have settled. */
  async live(untilMs: number, observe: () => void): Promise<void> {
    for (let next = this.#heap[0]; next !== undefined && next.atMs <= untilMs; next = this.#heap[0]) {
      this.#pop();
      this.nowMs = next.atMs;
      this.events++;
      next.run();
      await turn();
      observe();
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      if (left === undefined) break;
      const right = heap[2 * index + 2];
      const useRight = right !== undefined && before(right, left);
      const child = useRight ? right : left;
      if (before(last, child)) break;
      heap[index] = child;
      index = 2 * index + (useRight ? 2 : 1);
    }
    heap[index] = last;
  }
}

function before(left: Event, right: Event): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}

/** A process of the world: a clock that runs a little fast or slow, and may be stopped while time goes on. */
export class SimulatedProcess implements Clock {
  readonly name: string;
  readonly world: World;
  readonly #rate: number;
  #pausedUntilMs = 0;
  #pausedMs = 0;
  #dead = false;

  constructor(world: World, name: string, drift: number) {
    this.world = world;
    this.name = name;
    this.#rate = 1 + drift;
  }

  get dead(): boolean {
    return this.#dead;
  }

  get paused(): boolean {
    return this.world.nowMs < this.#pausedUntilMs;
  }

  /** For how long it has run so far, pauses left out, on its own clock. */
  get runMs(): number {
    const leftMs = Math.max(0, this.#pausedUntilMs - this.world.nowMs);
    return (this.world.nowMs - this.#pausedMs + leftMs) * this.#rate;
  }

  /** Like SIGSTOP: nothing runs, the clocks go on. */
  pause(ms: number): void {
    const untilMs = Math.max(this.#pausedUntilMs, this.world.nowMs + ms);
    this.#pausedMs += untilMs - Math.max(this.#pausedUntilMs, this.world.nowMs);
    this.#pausedUntilMs = untilMs;
  }

  /** Like SIGKILL. */
  kill(): void {
    this.#dead = true;
  }

  /** Runs `work` now, or when the pause is over, or never. */
  deliver(work: () => void): void {
    if (this.#dead) return;
    if (this.paused) this.world.after(this.#pausedUntilMs - this.world.nowMs, () => this.deliver(work));
    else work();
  }

  monotonicMs(): number {
    return this.world.nowMs * this.#rate;
  }

  wallMs(): number {
    return START_WALL_MS + this.world.nowMs * this.#rate;
  }

  after(delayMs: number, run: () => void): Timer {
    let cancelled = false;
    this.world.after(delayMs / this.#rate, () => this.deliver(() => cancelled || run()));
    return {
      cancel: () => {
        cancelled = true;
      },
    };
  }

  stayAlive(): Timer {
    return { cancel: () => {} };
  }

  random(): number {
    return this.world.random();
  }

  randomBytes(size: number): Uint8Array {
    return Uint8Array.from({ length: size }, () => Math.floor(this.world.random() * 256));
  }
}
