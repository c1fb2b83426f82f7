/** S3: who has been followed by a later holder at the guarded resource writes no more. */
import type { History, Operation, Write } from "../operation.ts";
import { describe, type Violation } from "../violation.ts";

/** O(n log n), resource by resource. */
export function* writes(history: History): Generator<Violation> {
  const resources = new Map<string, Write[]>();
  for (const write of history.writes) {
    const list = resources.get(write.resource);
    if (list === undefined) resources.set(write.resource, [write]);
    else list.push(write);
  }
  for (const [resource, list] of resources) {
    yield* inRealTime(list);
    if (history.resources.has(resource)) yield* asRemembered(list, resource);
  }
  for (const id of history.strangers) {
    const text = `a resource remembers the write ${id}, which nobody made, or made once and it took effect twice`;
    yield { promise: "S3", text, operations: [], fromMs: history.endMs, toMs: history.endMs };
  }
}

/** Later holders have the higher token; without tokens, the later grant. */
function precedes(earlier: Operation, later: Operation): boolean {
  if (earlier.token !== undefined && later.token !== undefined) return earlier.token < later.token;
  return (earlier.grantedAtMs ?? 0) < (later.grantedAtMs ?? 0);
}

/** No write is accepted that began after one of a later holder had been. */
function* inRealTime(list: readonly Write[]): Generator<Violation> {
  const accepted = list.filter(({ answer }) => answer?.accepted === true);
  const byAnswer = accepted.toSorted((left, right) => (left.answer?.atMs ?? 0) - (right.answer?.atMs ?? 0));
  let next = 0;
  let latest: Write | undefined;
  for (const write of accepted.sort((left, right) => left.startedAtMs - right.startedAtMs)) {
    for (; next < byAnswer.length; next++) {
      const earlier = byAnswer[next];
      if (earlier?.answer === undefined || earlier.answer.atMs > write.startedAtMs) break;
      if (latest === undefined || precedes(latest.operation, earlier.operation)) latest = earlier;
    }
    if (latest !== undefined && precedes(write.operation, latest.operation))
      yield violation(latest, write, "was accepted after a write of");
  }
}

/** In what the resource remembers, no holder writes after a later one, and the guard's answers are true. */
function* asRemembered(list: readonly Write[], resource: string): Generator<Violation> {
  const applied = list.filter((each) => each.place !== undefined);
  let latest: Write | undefined;
  for (const write of applied.sort((left, right) => (left.place ?? 0) - (right.place ?? 0))) {
    if (latest !== undefined && precedes(write.operation, latest.operation))
      yield violation(latest, write, "took effect after a write of");
    else latest = write;
  }
  for (const write of list) {
    if (write.answer === undefined || write.answer.accepted === (write.place !== undefined)) continue;
    const what = write.answer.accepted ? "was accepted and is not there" : "was refused and is there all the same";
    const text = `a write of ${describe(write.operation)} to ${JSON.stringify(resource)} ${what}`;
    yield { promise: "S3", text, operations: [write.operation], fromMs: write.startedAtMs, toMs: write.answer.atMs };
  }
}

function violation(later: Write, write: Write, what: string): Violation {
  const text = `a write under ${describe(write.operation)} ${what} ${describe(later.operation)}`;
  const toMs = Math.max(write.answer?.atMs ?? write.startedAtMs, later.answer?.atMs ?? later.startedAtMs);
  const fromMs = Math.min(later.startedAtMs, write.startedAtMs);
  return { promise: "S3", text, operations: [later.operation, write.operation], fromMs, toMs };
}
