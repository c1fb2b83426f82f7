/** S4: nobody but its owner ends a hold. */
import type { Operation } from "../operation.ts";
import type { Timeline } from "../timeline.ts";
import { describe, duration, type Violation } from "../violation.ts";

/** Clocks of one process are read one after the other. */
const TOLERANCE_MS = 10;
/** Losses that are nobody's fault: taken on purpose, or ended by the holder's own options. */
const WANTED = new Set(["stolen", "evicted", "max-hold", "closed"]);

/** A hold that was lost before its deadline, while nothing disturbed the engine, was ended by somebody else. O(n log d). */
export function* ownership(operations: readonly Operation[], disturbed: Timeline): Generator<Violation> {
  for (const operation of operations) {
    const { grantedAtMs, untilMs, lost, releasingAtMs, name } = operation;
    if (grantedAtMs === undefined || lost === undefined || WANTED.has(lost.why)) continue;
    if (lost.atMs >= untilMs - TOLERANCE_MS || lost.atMs > (releasingAtMs ?? Infinity)) continue;
    if (disturbed.overlapping(grantedAtMs, lost.atMs) !== undefined) continue;
    const early = duration(untilMs - lost.atMs);
    const text = `${describe(operation)} of ${JSON.stringify(name)} was lost (${lost.why}) ${early} before its deadline`;
    yield { promise: "S4", text, operations: [operation], fromMs: grantedAtMs, toMs: lost.atMs };
  }
}
