/** S2: the tokens of one name strictly increase in the order of grants. */
import { holdEndMs, type Operation } from "../operation.ts";
import type { Timeline } from "../timeline.ts";
import { describe, type Violation } from "../violation.ts";

interface Numbered extends Operation {
  grantedAtMs: number;
  token: bigint;
}

/**
 * The grant itself lies somewhere between request and answer. Three things can be said of its order all the same:
 * no token comes twice; what was granted before another was asked for has the lower token; and so has, of two holders
 * that exclude each other, the one that was told first (where exclusion holds). O(n log n).
 */
export function* tokens(operations: readonly Operation[], broken: Timeline): Generator<Violation> {
  const numbered = operations.filter((each): each is Numbered => each.token !== undefined);
  yield* repeated(numbered);
  yield* inRealTime(numbered);
  yield* amongHolders(numbered, broken);
}

function* repeated(numbered: readonly Numbered[]): Generator<Violation> {
  const first = new Map<bigint, Numbered>();
  for (const operation of numbered) {
    const earlier = first.get(operation.token);
    if (earlier !== undefined) yield violation(earlier, operation, "the same token twice");
    else first.set(operation.token, operation);
  }
}

function* inRealTime(numbered: readonly Numbered[]): Generator<Violation> {
  const granted = numbered.toSorted((left, right) => left.grantedAtMs - right.grantedAtMs);
  let next = 0;
  let highest: Numbered | undefined;
  for (const operation of numbered.toSorted((left, right) => left.requestedAtMs - right.requestedAtMs)) {
    for (; next < granted.length; next++) {
      const earlier = granted[next];
      if (earlier === undefined || earlier.grantedAtMs > operation.requestedAtMs) break;
      if (highest === undefined || earlier.token > highest.token) highest = earlier;
    }
    if (highest !== undefined && operation.token < highest.token)
      yield violation(highest, operation, "a later request got the lower token");
  }
}

function* amongHolders(numbered: readonly Numbered[], broken: Timeline): Generator<Violation> {
  let highest: Numbered | undefined;
  let highestExclusive: Numbered | undefined;
  // A grant that came after its deadline may have been overtaken.
  const inTime = numbered.filter((each) => holdEndMs(each) > each.grantedAtMs);
  for (const operation of inTime.sort((left, right) => left.grantedAtMs - right.grantedAtMs)) {
    const earlier = operation.mode === "exclusive" ? highest : highestExclusive;
    if (
      earlier !== undefined &&
      operation.token < earlier.token &&
      operation.requestedAtMs < earlier.grantedAtMs && // else said already
      broken.overlapping(Math.min(operation.requestedAtMs, earlier.requestedAtMs), operation.grantedAtMs) === undefined
    ) {
      yield violation(earlier, operation, "the later of two holders that exclude each other has the lower token");
    }
    if (highest === undefined || operation.token > highest.token) highest = operation;
    if (operation.mode !== "exclusive") continue;
    if (highestExclusive === undefined || operation.token > highestExclusive.token) highestExclusive = operation;
  }
}

function violation(earlier: Numbered, later: Numbered, what: string): Violation {
  const text = `${what} in ${JSON.stringify(later.name)}: ${describe(earlier)}, then ${describe(later)}`;
  const [fromMs, toMs] = [earlier.grantedAtMs, later.grantedAtMs];
  const operations = [earlier, later];
  return { promise: "S2", text, operations, fromMs: Math.min(fromMs, toMs), toMs: Math.max(fromMs, toMs) };
}
