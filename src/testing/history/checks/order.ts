/** First come, first served. */
import type { Operation } from "../operation.ts";
import { describe, type Violation } from "../violation.ts";

/**
 * Who was seen in the queue before another asked goes first, where the two exclude each other. A sweep in the order of
 * asking: O(n log n).
 */
export function* order(operations: readonly Operation[]): Generator<Violation> {
  const granted = operations.filter((each) => each.grantedAtMs !== undefined);
  const queued = granted.filter((each) => each.queuedAtMs !== undefined);
  queued.sort((left, right) => (left.queuedAtMs ?? 0) - (right.queuedAtMs ?? 0));
  let next = 0;
  let last: Operation | undefined;
  let lastExclusive: Operation | undefined;
  for (const operation of granted.sort((left, right) => left.requestedAtMs - right.requestedAtMs)) {
    for (; next < queued.length; next++) {
      const earlier = queued[next];
      if (earlier === undefined || (earlier.queuedAtMs ?? 0) > operation.requestedAtMs) break;
      last = later(last, earlier);
      if (earlier.mode === "exclusive") lastExclusive = later(lastExclusive, earlier);
    }
    const ahead = operation.mode === "exclusive" ? last : lastExclusive;
    if (ahead === undefined || (ahead.grantedAtMs ?? 0) <= (operation.grantedAtMs ?? 0)) continue;
    const text = `${describe(operation)} of ${JSON.stringify(operation.name)} overtook ${describe(ahead)}, which was in the queue first`;
    const [fromMs, toMs] = [operation.grantedAtMs ?? 0, ahead.grantedAtMs ?? 0];
    yield { promise: "order", text, operations: [ahead, operation], fromMs, toMs };
  }
}

/** Of two the one that was granted later. */
function later(left: Operation | undefined, right: Operation): Operation {
  return left === undefined || (right.grantedAtMs ?? 0) > (left.grantedAtMs ?? 0) ? right : left;
}
