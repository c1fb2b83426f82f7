/** L1: a free place passes on in time and no permit is lost. L5: everybody gets an answer. */
import { holdEndMs, pendingEndMs, type Absence, type History, type Operation } from "../operation.ts";
import type { Timeline } from "../timeline.ts";
import { duration, type Violation } from "../violation.ts";
import { Room } from "./room.ts";

interface Step {
  readonly atMs: number;
  readonly what: "waits" | "gives up" | "holds" | "leaves";
  readonly operation: Operation;
}

/**
 * Somebody waits although there is room, for longer than `withinMs` of undisturbed time. Who stands in front of whom is
 * not known from outside; so "room" is what any order of those who wait would have. A sweep: O(n log n).
 */
export function* progress(
  operations: readonly Operation[],
  { absences, endMs }: Pick<History, "absences" | "endMs">,
  disturbed: Timeline,
  withinMs: number,
): Generator<Violation> {
  const room = new Room();
  const late: Violation[] = [];
  const judge = (waiter: Operation, sinceMs: number, toMs: number, why: string): void => {
    const calm = toMs - sinceMs > withinMs ? disturbed.longestCalm(sinceMs, toMs) : undefined;
    if (calm === undefined || calm.toMs - calm.fromMs <= withinMs) return;
    const text = `${waiter.process} waited for ${JSON.stringify(waiter.name)} for ${duration(calm.toMs - calm.fromMs)} with room for it: ${why}`;
    late.push({ promise: "L1", text, operations: [waiter], ...calm });
  };
  const all = steps(operations, absences, endMs);
  for (let index = 0; index < all.length;) {
    const atMs = all[index]?.atMs ?? endMs;
    for (; all[index]?.atMs === atMs; index++) apply(room, all[index]);
    room.turn(atMs, judge);
  }
  room.end(endMs, judge);
  yield* late;
}

function apply(room: Room, step: Step | undefined): void {
  if (step === undefined) return;
  const { what, operation } = step;
  if (what === "waits") room.wait(operation);
  else if (what === "gives up") room.stopWaiting(operation);
  else if (what === "holds") room.hold(operation);
  else room.leave(operation);
}

function steps(operations: readonly Operation[], absences: readonly Absence[], endMs: number): Step[] {
  const away = new Map<string, Absence[]>();
  for (const absence of absences) {
    const list = away.get(absence.process);
    if (list === undefined) away.set(absence.process, [absence]);
    else list.push(absence);
  }
  const all: Step[] = [];
  for (const operation of operations) {
    const pendingMs = Math.min(pendingEndMs(operation), endMs);
    for (const [fromMs, toMs] of present(operation.requestedAtMs, pendingMs, away.get(operation.process) ?? [])) {
      all.push({ atMs: fromMs, what: "waits", operation }, { atMs: toMs, what: "gives up", operation });
    }
    const { grantedAtMs } = operation;
    const leftMs = holdEndMs(operation);
    if (grantedAtMs === undefined || leftMs <= grantedAtMs) continue;
    all.push({ atMs: grantedAtMs, what: "holds", operation });
    if (leftMs <= endMs) all.push({ atMs: leftMs, what: "leaves", operation });
  }
  return all.sort((left, right) => left.atMs - right.atMs);
}

/** [fromMs, toMs] without the time during which its process did not run. */
function present(fromMs: number, toMs: number, absences: readonly Absence[]): [number, number][] {
  const spans: [number, number][] = [];
  let cursor = fromMs;
  for (const absence of absences) {
    if (absence.toMs <= cursor) continue;
    if (absence.fromMs >= toMs) break;
    if (absence.fromMs > cursor) spans.push([cursor, absence.fromMs]);
    cursor = absence.toMs;
  }
  if (cursor < toMs) spans.push([cursor, toMs]);
  return spans;
}

/** Requests and releases that never came back although their process lives on to the end. */
export function* settled({ operations, absences, endMs }: History): Generator<Violation> {
  const away = new Set(absences.filter(({ toMs }) => toMs === Infinity).map(({ process }) => process));
  for (const operation of operations) {
    const { process, name, killedAtMs, releasingAtMs, releasedAtMs, requestedAtMs: fromMs } = operation;
    if (killedAtMs !== undefined || away.has(process)) continue;
    const waits = pendingEndMs(operation) === Infinity;
    if (!waits && (releasingAtMs === undefined || releasedAtMs !== undefined)) continue;
    const text = `${process}'s ${waits ? "request for" : "release of"} ${JSON.stringify(name)} never came back`;
    yield { promise: "L5", text, operations: [operation], fromMs, toMs: endMs };
  }
}
