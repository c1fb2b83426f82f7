/** Valid histories pass; each single mutation of one is caught, by the promise that it breaks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assemble } from "../../../src/testing/history/assemble.ts";
import type { HistoryEvent } from "../../../src/testing/history/event.ts";
import { checkHistory, countByPromise, type Judged } from "../../../src/testing/history/index.ts";
import { holdEndMs, type Operation } from "../../../src/testing/history/operation.ts";
import { PATIENCE_MS, TTL_MS, ValidWorld } from "./world.ts";

const SEEDS = 150;
const OPTIONS = { passesOnWithinMs: PATIENCE_MS, complete: true };

const verdict = (events: readonly HistoryEvent[]): Partial<Record<Judged, number>> =>
  countByPromise(
    checkHistory(
      events.toSorted((left, right) => left.atMs - right.atMs),
      OPTIONS,
    ).violations,
  );

void test("valid histories pass", () => {
  let grants = 0;
  let writes = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const report = checkHistory(new ValidWorld(seed).events, OPTIONS);
    assert.deepEqual(
      report.violations.map((each) => report.draw(each)),
      [],
      `seed ${seed}`,
    );
    grants += report.grants;
    writes += report.writes;
  }
  assert.ok(grants > SEEDS * 50 && writes > SEEDS * 20, `${grants} grants, ${writes} writes`);
});

/** Changes `events` in one place; undefined: this history has no such place. */
type Mutation = (events: HistoryEvent[], operations: readonly Operation[]) => HistoryEvent[] | undefined;

const excludes = (left: Operation, right: Operation): boolean =>
  left.name === right.name && left !== right && (left.mode === "exclusive" || right.mode === "exclusive");

const replaced = (
  events: readonly HistoryEvent[],
  is: (event: HistoryEvent) => boolean,
  by: (event: HistoryEvent) => HistoryEvent[],
): HistoryEvent[] => events.flatMap((event) => (is(event) ? by(event) : [event]));

const grantOf =
  (operation: Operation | undefined) =>
  (event: HistoryEvent): boolean =>
    event.kind === "granted" && event.id === operation?.id;

/** Two that exclude each other, the second granted while the history says that it waited for the first. */
function pair(operations: readonly Operation[]): readonly [Operation, Operation] | undefined {
  for (const first of operations) {
    const { grantedAtMs = Infinity } = first;
    if (holdEndMs(first) - grantedAtMs < 5) continue;
    const second = operations.find(
      (each) =>
        excludes(first, each) && each.requestedAtMs < holdEndMs(first) - 4 && (each.grantedAtMs ?? 0) > grantedAtMs,
    );
    if (second !== undefined) return [first, second];
  }
  return undefined;
}

const MUTATIONS: Record<string, readonly [Judged, Mutation]> = {
  "granted while another holds": [
    "S1",
    (events, operations) => {
      const [first, second] = pair(operations) ?? [];
      if (first === undefined || second === undefined) return undefined;
      const atMs = Math.max(first.grantedAtMs ?? 0, second.requestedAtMs) + 1;
      return replaced(events, grantOf(second), (event) => [{ ...event, atMs, untilMs: atMs + TTL_MS } as HistoryEvent]);
    },
  ],
  "held on after its end": [
    "S1",
    (events, operations) => {
      const [first, second] = pair(operations) ?? [];
      if (first === undefined || second === undefined) return undefined;
      if (holdEndMs(second) < (second.grantedAtMs ?? 0) + 1 || first.lost !== undefined) return undefined;
      if (first.killedAtMs !== undefined) return undefined;
      const lateMs = (second.grantedAtMs ?? 0) + 0.5;
      return replaced(
        events,
        (event) => "id" in event && event.id === first.id && /^(granted|releas)/.test(event.kind),
        (event) => (event.kind === "granted" ? [{ ...event, untilMs: lateMs + 1 }] : [{ ...event, atMs: lateMs + 5 }]),
      );
    },
  ],
  "two tokens exchanged": [
    "S2",
    (events, operations) => {
      const [first, second] = pair(operations) ?? [];
      if (first === undefined || second?.token === undefined || holdEndMs(second) <= (second.grantedAtMs ?? 0))
        return undefined;
      const tokens = new Map([
        [first.id, String(second.token)],
        [second.id, String(first.token)],
      ]);
      return replaced(
        events,
        (event) => grantOf(first)(event) || grantOf(second)(event),
        (event) => [{ ...event, token: "id" in event ? tokens.get(event.id) : undefined } as HistoryEvent],
      );
    },
  ],
  "a token twice": [
    "S2",
    (events, operations) => {
      const [first, second] = pair(operations) ?? [];
      if (first === undefined) return undefined;
      return replaced(events, grantOf(second), (event) => [{ ...event, token: String(first.token) } as HistoryEvent]);
    },
  ],
  "a refused write accepted": [
    "S3",
    (events) => {
      const refused = events.find((event) => event.kind === "written" && !event.accepted);
      return (
        refused &&
        replaced(
          events,
          (event) => event === refused,
          (event) => [{ ...event, accepted: true } as HistoryEvent],
        )
      );
    },
  ],
  "an accepted write forgotten": [
    "S3",
    (events) => {
      const applied = events.filter((event) => event.kind === "applied");
      return replaced(
        events,
        (event) => event === applied[applied.length >> 1],
        () => [],
      );
    },
  ],
  "two writes in the wrong order": [
    "S3",
    (events, operations) => {
      const holder = new Map(events.flatMap((event) => (event.kind === "writing" ? [[event.write, event.id]] : [])));
      const token = (write: string): bigint => operations.find(({ id }) => id === holder.get(write))?.token ?? 0n;
      const index = events.findIndex((event, at) => {
        const next = events[at + 1];
        return event.kind === "applied" && next?.kind === "applied" && token(next.write) > token(event.write);
      });
      if (index < 0) return undefined;
      return [...events.slice(0, index), ...events.slice(index, index + 2).toReversed(), ...events.slice(index + 2)];
    },
  ],
  "taken away before its deadline": [
    "S4",
    (events, operations) => {
      const victim = operations.find(
        (each) => (each.releasingAtMs ?? 0) < each.untilMs - 20 && each.releasedAtMs !== undefined,
      );
      if (victim === undefined) return undefined;
      const atMs = (victim.releasingAtMs ?? 0) - 0.5;
      return [...events, { kind: "lost", id: victim.id, why: "expired", atMs, process: victim.process }];
    },
  ],
  "a hand-off that never comes": [
    "L1",
    (events, operations) => {
      const [first, second] = pair(operations) ?? [];
      if (first === undefined || second === undefined) return undefined;
      const beginMs = second.grantedAtMs ?? 0;
      const before = events.filter(({ atMs }) => atMs < beginMs);
      return [...before, { kind: "ended", atMs: beginMs + 2 * PATIENCE_MS, process: "judge" }];
    },
  ],
  "an answer that never comes": [
    "L5",
    (events, operations) => {
      const killed = new Set(events.flatMap((event) => (event.kind === "killed" ? [event.victim] : [])));
      const last = operations.findLast((each) => !killed.has(each.process) && each.grantedAtMs !== undefined);
      if (last === undefined) return undefined;
      return replaced(
        events,
        (event) => "id" in event && event.id === last.id && event.kind !== "requested",
        () => [],
      );
    },
  ],
  "an overtaking": [
    "order",
    (events, operations) => {
      for (const first of operations) {
        const second = operations.find(
          (each) =>
            excludes(first, each) &&
            each.requestedAtMs > (first.queuedAtMs ?? Infinity) &&
            each.requestedAtMs < (first.grantedAtMs ?? 0) - 2,
        );
        if (second === undefined) continue;
        const atMs = (first.grantedAtMs ?? 0) - 1;
        return replaced(events, grantOf(second), (event) => [{ ...event, atMs }]);
      }
      return undefined;
    },
  ],
};

for (const [what, [promise, mutate]] of Object.entries(MUTATIONS)) {
  void test(`caught as ${promise}: ${what}`, () => {
    let mutated = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { events } = new ValidWorld(seed);
      const { operations } = assemble(events);
      const changed = mutate(events, operations);
      if (changed === undefined) continue;
      mutated++;
      assert.ok(
        (verdict(changed)[promise] ?? 0) > 0,
        `seed ${seed}: not caught; found ${JSON.stringify(verdict(changed))}`,
      );
    }
    assert.ok(mutated > SEEDS / 4, `only ${mutated} histories had a place for it`);
  });
}
