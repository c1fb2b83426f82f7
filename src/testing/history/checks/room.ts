/** Who holds and who waits for one name, and since when somebody waits in vain. */
import type { Operation } from "../operation.ts";

/** `waiter` waited from `sinceMs` to `toMs` although there was room; `why` says what made the room. */
export type Judge = (waiter: Operation, sinceMs: number, toMs: number, why: string) => void;

export class Room {
  readonly #exclusive = new Set<Operation>();
  readonly #shared = new Set<Operation>();
  /** In the order in which they began to wait. */
  readonly #waitingExclusive = new Set<Operation>();
  readonly #waitingLimited = new Set<Operation>();
  /** Readers, and since when each waits. */
  readonly #readers = new Map<Operation, number | undefined>();
  /** Of the limited ones that hold or wait: how many of each limit. */
  readonly #limits = new Map<number, number>();
  readonly #goneReaders: [Operation, number][] = [];
  /** Since when a place is free that somebody waits for. */
  #freeSinceMs: number | undefined;
  #freeFor: Operation | undefined;
  #why = "";
  /** Since when nothing stands in a reader's way. */
  #openSinceMs: number | undefined;

  wait(operation: Operation): void {
    if (operation.mode === "exclusive") this.#waitingExclusive.add(operation);
    else if (operation.limit === Infinity) this.#readers.set(operation, undefined);
    else {
      this.#waitingLimited.add(operation);
      this.#count(operation, 1);
    }
  }

  stopWaiting(operation: Operation): void {
    if (operation.mode === "exclusive") this.#waitingExclusive.delete(operation);
    else if (operation.limit === Infinity) {
      const sinceMs = this.#readers.get(operation);
      if (sinceMs !== undefined) this.#goneReaders.push([operation, sinceMs]);
      this.#readers.delete(operation);
    } else if (this.#waitingLimited.delete(operation)) this.#count(operation, -1);
  }

  hold(operation: Operation): void {
    (operation.mode === "exclusive" ? this.#exclusive : this.#shared).add(operation);
    this.#count(operation, 1);
  }

  leave(operation: Operation): void {
    const inside = operation.mode === "exclusive" ? this.#exclusive : this.#shared;
    if (inside.delete(operation)) this.#count(operation, -1);
  }

  /** All that happened at `atMs` has been told. */
  turn(atMs: number, judge: Judge): void {
    this.#turnReaders(atMs, judge);
    const waiter = this.#served();
    if (this.#freeSinceMs !== undefined && this.#freeFor !== undefined && waiter === undefined)
      judge(this.#freeFor, this.#freeSinceMs, atMs, this.#why);
    if (waiter === undefined) this.#freeSinceMs = undefined;
    else this.#freeSinceMs ??= atMs;
    this.#freeFor = waiter;
    this.#why = this.#situation();
  }

  end(endMs: number, judge: Judge): void {
    if (this.#freeSinceMs !== undefined && this.#freeFor !== undefined)
      judge(this.#freeFor, this.#freeSinceMs, endMs, this.#why);
    this.#judgeOldestReader(endMs, judge);
  }

  /** Somebody for whom there is room, in whatever order they stand. */
  #served(): Operation | undefined {
    const [exclusive] = this.#waitingExclusive;
    const [limited] = this.#waitingLimited;
    if (this.#exclusive.size > 0) return undefined;
    if (this.#shared.size === 0) return exclusive ?? limited;
    // An exclusive one may stand in front of everybody else.
    if (exclusive !== undefined || limited === undefined) return undefined;
    return this.#shared.size < Math.min(...this.#limits.keys()) ? limited : undefined;
  }

  /** Readers are judged one by one: many of them may come and go while the way is open. */
  #turnReaders(atMs: number, judge: Judge): void {
    const open = this.#exclusive.size === 0 && this.#waitingExclusive.size === 0 && this.#limits.size === 0;
    const { readers, openSinceMs } = { readers: this.#goneReaders.splice(0), openSinceMs: this.#openSinceMs };
    if (openSinceMs !== undefined) {
      for (const [reader, sinceMs] of readers)
        judge(reader, Math.max(sinceMs, openSinceMs), atMs, "nobody is in its way");
      if (!open) this.#judgeOldestReader(atMs, judge);
    }
    if (open) this.#openSinceMs ??= atMs;
    else this.#openSinceMs = undefined;
    for (const [reader, sinceMs] of this.#readers) if (sinceMs === undefined) this.#readers.set(reader, atMs);
  }

  #judgeOldestReader(atMs: number, judge: Judge): void {
    const [[oldest, sinceMs] = []] = this.#readers;
    if (oldest === undefined || sinceMs === undefined || this.#openSinceMs === undefined) return;
    judge(oldest, Math.max(sinceMs, this.#openSinceMs), atMs, "nobody is in its way");
  }

  #situation(): string {
    if (this.#shared.size === 0) return "nobody held it";
    return `${this.#shared.size} of ${Math.min(...this.#limits.keys())} permits were out`;
  }

  #count({ mode, limit }: Operation, change: number): void {
    if (mode === "exclusive" || limit === Infinity) return;
    const count = (this.#limits.get(limit) ?? 0) + change;
    if (count === 0) this.#limits.delete(limit);
    else this.#limits.set(limit, count);
  }
}
