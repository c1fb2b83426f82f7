/** The kit is itself under test: engines with planted mistakes have to be caught, by the right cases. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { conformanceCases } from "../../src/testing/conformance.ts";
import { memorySubject } from "./subjects/memory.ts";
import { CASES } from "../../src/testing/cases/index.ts";
import { WRONG_ENGINES, type WrongEngine } from "./wrong-engines.ts";
import { BEYOND_MEMORY, WRONG_INCIDENTS } from "./wrong-incidents.ts";

const ALL = [...WRONG_ENGINES, ...WRONG_INCIDENTS];

/** Wrong engines hang where right ones answer. */
const PATIENCE_MS = 3_000;

/** What the case says of the engine; nothing when it passes. */
async function verdict(wrong: WrongEngine, id: string): Promise<string | undefined> {
  // A subject for each case: what a failed one leaves behind must not be what the next one stumbles over.
  const subject = { ...memorySubject(wrong), patienceMs: PATIENCE_MS };
  const found = conformanceCases(subject).find((each) => each.id === id);
  assert.ok(found?.status === "runs", `there is no case ${id}`);
  return await found.run().then(
    () => undefined,
    (error: unknown) => `${id}: ${error instanceof Error ? error.stack : String(error)}`,
  );
}

void describe("engines with planted mistakes are caught", { concurrency: 6 }, () => {
  for (const wrong of ALL) {
    void test(`${wrong.mistake}: ${wrong.caughtBy.join(", ")}`, async () => {
      const verdicts = await Promise.all(wrong.caughtBy.map((id) => verdict(wrong, id)));
      const missed = wrong.caughtBy.filter((_, index) => verdicts[index] === undefined);
      assert.deepEqual(missed, [], "not caught");
    });
  }
});

void test("every promise has a planted mistake that its cases catch", () => {
  const covered = new Set(ALL.flatMap((each) => each.caughtBy.map((id) => id.slice(0, 2))));
  for (const promise of ["S1", "S2", "S3", "S4", "S5", "L1", "L2", "L3", "L4", "L5"])
    assert.ok(covered.has(promise), promise);
});

void test("every case with the number of an incident has a planted mistake that it catches", () => {
  const catching = new Set(ALL.flatMap((each) => each.caughtBy));
  const numbered = CASES.filter((each) => (each.incidents ?? []).length > 0).map((each) => each.id as string);
  const unproven = numbered.filter((id) => !catching.has(id) && !(id in BEYOND_MEMORY));
  assert.deepEqual(unproven, []);
});

void test("the right engine passes the same cases", async () => {
  const ids = [...new Set(ALL.flatMap((each) => each.caughtBy))];
  const verdicts = await Promise.all(ids.map((id) => verdict({ mistake: "none", caughtBy: [] }, id)));
  assert.deepEqual(
    verdicts.filter((each) => each !== undefined),
    [],
  );
});
