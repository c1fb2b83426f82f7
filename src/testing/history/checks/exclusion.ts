/** S1: at most one exclusive holder inside its deadline, never beside a shared one; at most n for a limit of n. */
import { holdEndMs, type Operation } from "../operation.ts";
import type { Timeline } from "../timeline.ts";
import { describe, duration, type Violation } from "../violation.ts";

interface Edge {
  readonly atMs: number;
  readonly begins: boolean;
  readonly operation: Operation;
}

/** A sweep over the beginnings and ends of the holds of one name: O(n log n) for a bounded number of different limits. */
export function* exclusion(operations: readonly Operation[], broken: Timeline): Generator<Violation> {
  const inside = new Inside();
  for (const { begins, operation, atMs } of edges(operations)) {
    if (!begins) {
      inside.remove(operation);
      continue;
    }
    const met = inside.incompatible(operation);
    if (met !== undefined) yield violation(operation, met, inside.size, atMs, broken);
    inside.add(operation);
  }
}

function edges(operations: readonly Operation[]): Edge[] {
  const all: Edge[] = [];
  for (const operation of operations) {
    const { grantedAtMs } = operation;
    const endMs = holdEndMs(operation);
    // What was lost on the way to its owner never was a hold.
    if (grantedAtMs === undefined || endMs <= grantedAtMs) continue;
    all.push({ atMs: grantedAtMs, begins: true, operation }, { atMs: endMs, begins: false, operation });
  }
  // At one instant ends come first: a hold lasts up to its end and not longer.
  return all.sort((left, right) => left.atMs - right.atMs || Number(left.begins) - Number(right.begins));
}

function violation(late: Operation, met: Operation, others: number, atMs: number, broken: Timeline): Violation {
  const untilMs = Math.min(holdEndMs(late), holdEndMs(met));
  const excuse = broken.overlapping(met.grantedAtMs ?? atMs, atMs)?.what;
  const both = late.mode === "shared" && met.mode === "shared";
  const text = both
    ? `${others + 1} at once inside ${JSON.stringify(late.name)}, one too many: ${describe(late)} came last`
    : `two inside ${JSON.stringify(late.name)} for ${duration(untilMs - atMs)}: ${describe(met)} and ${describe(late)}`;
  return { promise: "S1", text, operations: [met, late], fromMs: atMs, toMs: untilMs, excuse };
}

/** Who is inside now. */
class Inside {
  readonly #exclusive = new Set<Operation>();
  readonly #shared = new Set<Operation>();
  /** How many of those inside came with each limit. */
  readonly #limits = new Map<number, number>();

  get size(): number {
    return this.#exclusive.size + this.#shared.size;
  }

  /** Somebody who must not be inside beside `operation`. */
  incompatible(operation: Operation): Operation | undefined {
    const [exclusive] = this.#exclusive;
    if (exclusive !== undefined) return exclusive;
    const [shared] = this.#shared;
    if (operation.mode === "exclusive") return shared;
    const most = Math.min(operation.limit, ...this.#limits.keys());
    return this.#shared.size >= most ? shared : undefined;
  }

  add(operation: Operation): void {
    this.#of(operation).add(operation);
    if (operation.mode === "shared") this.#limits.set(operation.limit, (this.#limits.get(operation.limit) ?? 0) + 1);
  }

  remove(operation: Operation): void {
    this.#of(operation).delete(operation);
    if (operation.mode !== "shared") return;
    const left = (this.#limits.get(operation.limit) ?? 1) - 1;
    if (left === 0) this.#limits.delete(operation.limit);
    else this.#limits.set(operation.limit, left);
  }

  #of({ mode }: Operation): Set<Operation> {
    return mode === "exclusive" ? this.#exclusive : this.#shared;
  }
}
