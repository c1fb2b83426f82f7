/**
 * Many alarms on one timer: a binary heap by time. All alarms that are due ring in one go, so that the renewals
 * they start travel in one batch. Setting and cancelling cost O(log n); a lock that comes and goes between two rings
 * sets no timer of the system at all.
 */
import type { Clock, Timer } from "./clock.ts";

export interface Alarm {
  /** Harmless when it has rung or was cancelled. */
  cancel(): void;
}

class HeapEntry implements Alarm {
  readonly atMs: number;
  readonly ring: () => void;
  readonly #heap: Alarms;
  index = -1;

  constructor(heap: Alarms, atMs: number, ring: () => void) {
    this.#heap = heap;
    this.atMs = atMs;
    this.ring = ring;
  }

  cancel(): void {
    this.#heap.remove(this);
  }
}

export class Alarms {
  readonly #clock: Clock;
  readonly #heap: HeapEntry[] = [];
  #timer: Timer | undefined;
  #timerAtMs = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `ring` at `atMs` on the monotonic clock, or as soon after as the event loop allows. Never keeps the process alive. */
  set(atMs: number, ring: () => void): Alarm {
    const entry = new HeapEntry(this, atMs, ring);
    entry.index = this.#heap.length;
    this.#heap.push(entry);
    this.#up(entry.index);
    if (atMs < this.#timerAtMs) this.#arm(atMs);
    return entry;
  }

  /** @internal */
  remove(entry: HeapEntry): void {
    const { index } = entry;
    if (index < 0) return;
    entry.index = -1;
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    this.#put(last, index);
    this.#up(index);
    this.#down(last.index);
  }

  /** Cancels all of them. */
  clear(): void {
    for (const entry of this.#heap) entry.index = -1;
    this.#heap.length = 0;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAtMs = Infinity;
  }

  #arm(atMs: number): void {
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    // Rounded up: Node's timers may fire a fraction of a millisecond early.
    this.#timer = this.#clock.after(Math.max(0, Math.ceil(atMs - this.#clock.monotonicMs())), () => this.#ringDue());
  }

  #ringDue(): void {
    this.#timer = undefined;
    this.#timerAtMs = Infinity;
    const now = this.#clock.monotonicMs();
    const due: HeapEntry[] = [];
    for (let head = this.#heap[0]; head !== undefined && head.atMs <= now; head = this.#heap[0]) {
      this.remove(head);
      due.push(head);
    }
    for (const entry of due) entry.ring();
    const next = this.#heap[0];
    if (next !== undefined && next.atMs < this.#timerAtMs) this.#arm(next.atMs);
  }

  #put(entry: HeapEntry, index: number): void {
    this.#heap[index] = entry;
    entry.index = index;
  }

  #up(from: number): void {
    const entry = this.#heap[from];
    if (entry === undefined) return;
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || parent.atMs <= entry.atMs) break;
      this.#put(parent, index);
      index = above;
    }
    this.#put(entry, index);
  }

  #down(from: number): void {
    const entry = this.#heap[from];
    if (entry === undefined) return;
    let index = from;
    for (;;) {
      const left = 2 * index + 1;
      const leftChild = this.#heap[left];
      if (leftChild === undefined) break;
      const rightChild = this.#heap[left + 1];
      const child = rightChild !== undefined && rightChild.atMs < leftChild.atMs ? rightChild : leftChild;
      if (entry.atMs <= child.atMs) break;
      const below = child.index;
      this.#put(child, index);
      index = below;
    }
    this.#put(entry, index);
  }
}
