/** Waiting: whom to watch among those ahead, and when to look again if nobody rings. */
import { watched, type Wish } from "../../engine/queue.ts";
import type { Bells } from "./bells.ts";
import type { Front, Moment } from "./queue-front.ts";
import type { Statements } from "./statements.ts";
import type { Visitors } from "./visitors.ts";

/** A waiter whose predecessor cannot be heard looks after it by itself. */
const UNHEARD_RECHECK_MS = 250;
/** How many of those ahead a waiter looks at. */
const AHEAD_OF_EXCLUSIVE = 8;
const AHEAD_OF_SHARED = 64;

interface Standing extends Wish {
  readonly visitor: number;
  readonly endsMs: number;
  readonly ttlMs: number;
  readonly boot: string | null;
}

export interface Waiter extends Wish {
  readonly owner: string;
  readonly place: number;
}

export class Predecessors {
  readonly #statements: Statements;
  readonly #visitors: Visitors;
  readonly #bells: Bells;

  constructor(statements: Statements, visitors: Visitors, bells: Bells) {
    this.#statements = statements;
    this.#visitors = visitors;
    this.#bells = bells;
  }

  /** Watches those ahead, and tells in how many ms to look again; null: nothing ahead ends by itself. Inside the transaction. */
  waitBehind(name: Uint8Array, waiter: Waiter, front: Front | undefined, { nowMs }: Moment): number | null {
    const { mode, place } = waiter;
    const many = mode === "exclusive" ? AHEAD_OF_EXCLUSIVE : AHEAD_OF_SHARED;
    const ahead = this.#statements
      .get("queue-ahead")
      .all(name, place, nowMs, this.#visitors.bootId, many) as unknown as Standing[];
    let recheckMs = Infinity;
    for (const each of ahead.slice(0, AHEAD_OF_EXCLUSIVE)) {
      recheckMs = Math.min(recheckMs, each.boot === this.#visitors.bootId ? each.endsMs - nowMs : each.ttlMs);
    }
    // The first of those who wait looks after all who are held; the others look after those just ahead of them.
    const first = front?.rows[front.held];
    if (front !== undefined && (first === undefined || first.place === place || recheckMs === Infinity)) {
      recheckMs = Math.min(recheckMs, front.endsInMs);
    }
    if (!this.#watch(waiter, ahead)) recheckMs = Math.min(recheckMs, UNHEARD_RECHECK_MS);
    return recheckMs === Infinity ? null : Math.max(recheckMs, 1);
  }

  /** False when one of those ahead cannot be heard. */
  #watch(waiter: Waiter, nearestFirst: readonly Standing[]): boolean {
    const queue = nearestFirst.toReversed();
    const index = queue.length;
    const positions = watched([...queue, waiter], index);
    const visitors = new Set<number>();
    for (const position of positions.length === 0 ? [index - 1] : positions) {
      const each = queue[position];
      if (each === undefined || each.visitor === this.#visitors.self || each.boot !== this.#visitors.bootId) continue;
      visitors.add(each.visitor);
    }
    const addresses = [...visitors].map((id) => this.#visitors.address(id));
    if (this.#bells.watch(waiter.owner, addresses)) return true;
    for (const id of visitors) this.#visitors.suspect(id);
    return false;
  }
}
