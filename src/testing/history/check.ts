/**
 * Decides whether a history keeps the promises of the model: S1 to S4, L1 (a free place passes on, no permit is lost), L5
 * (everybody gets an answer) and first come, first served. O(n log n) in the number of events.
 */
import { assemble } from "./assemble.ts";
import { exclusion } from "./checks/exclusion.ts";
import { order } from "./checks/order.ts";
import { ownership } from "./checks/ownership.ts";
import { progress, settled } from "./checks/progress.ts";
import { tokens } from "./checks/tokens.ts";
import { writes } from "./checks/writes.ts";
import { draw } from "./drawing.ts";
import type { HistoryEvent } from "./event.ts";
import { byName, type History } from "./operation.ts";
import { Timeline } from "./timeline.ts";
import type { Judged, Violation } from "./violation.ts";

export interface HistoryOptions {
  /**
   * How long, in ms of undisturbed time, a place may stay free while somebody waits for it: lease + rounding + what the
   * machine may be late. Default: not judged.
   */
  readonly passesOnWithinMs?: number | undefined;
  /** The history goes on until everybody has an answer. Default: false. */
  readonly complete?: boolean | undefined;
}

export interface HistoryReport {
  /** Broken promises, in the order of their time. */
  readonly violations: readonly Violation[];
  /** Overlaps while a fault had broken an assumption under which exclusion is promised. */
  readonly excused: readonly Violation[];
  readonly requests: number;
  readonly grants: number;
  readonly writes: number;
  /** A violation drawn as a time line, for a person. */
  readonly draw: (violation: Violation) => string;
}

/** `events` in the order of their time, as `readHistory` returns them. */
export function checkHistory(events: readonly HistoryEvent[], options: HistoryOptions = {}): HistoryReport {
  const history = assemble(events);
  const found = [...judge(history, options)].sort((left, right) => left.fromMs - right.fromMs);
  return {
    violations: found.filter(({ excuse }) => excuse === undefined),
    excused: found.filter(({ excuse }) => excuse !== undefined),
    requests: history.operations.length,
    grants: history.operations.filter(({ grantedAtMs }) => grantedAtMs !== undefined).length,
    writes: history.writes.length,
    draw: (violation) => draw(history, violation),
  };
}

function* judge(history: History, { passesOnWithinMs, complete = false }: HistoryOptions): Generator<Violation> {
  const disturbed = new Timeline(history.disturbances);
  const broken = new Timeline(history.disturbances.filter(({ breaksExclusion }) => breaksExclusion));
  for (const operations of byName(history.operations).values()) {
    yield* exclusion(operations, broken);
    yield* tokens(operations, broken);
    yield* ownership(operations, disturbed);
    yield* order(operations);
    if (passesOnWithinMs !== undefined) yield* progress(operations, history, disturbed, passesOnWithinMs);
  }
  yield* writes(history);
  if (complete) yield* settled(history);
}

/** How many violations there are of each promise. */
export function countByPromise(violations: readonly Violation[]): Partial<Record<Judged, number>> {
  const counts: Partial<Record<Judged, number>> = {};
  for (const { promise } of violations) counts[promise] = (counts[promise] ?? 0) + 1;
  return counts;
}
