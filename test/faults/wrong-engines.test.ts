/** The suite notices: engines with one planted mistake each, under the same faults and the same judge. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { WRONG_ENGINES } from "../conformance/wrong-engines.ts";
import { memoryDeployment } from "./suite/deployments/memory.ts";
import { runFaults } from "./suite/run.ts";

/** By the promise that the run must find broken; "complaints": something was left over or did not end. */
const NOTICED: Readonly<Record<string, string>> = {
  "everybody is granted at once": "S1",
  "readers do not see writers": "S1",
  "the lease is never over for its holder": "S1",
  "one token for all": "S2",
  "tokens fall": "S2",
  "release without a look at the owner": "S1",
  "leases that never end": "complaints",
  "no queue: whoever asks at the right moment has it": "complaints",
};

const MOST_SEEDS = 6;

void describe("the fault suite notices", { concurrency: 8 }, () => {
  for (const [mistake, broken] of Object.entries(NOTICED)) {
    void test(mistake, async () => {
      const wrong = WRONG_ENGINES.find((each) => each.mistake === mistake);
      assert.ok(wrong !== undefined, "there is no such engine any more");
      const start = () => memoryDeployment(wrong);
      // A few seconds of faults do not touch everything: the next seed may.
      let found: Readonly<Record<string, number>> = {};
      for (let seed = 42; seed < 42 + MOST_SEEDS && (found[broken] ?? 0) === 0; seed++) {
        const run = { engine: "memory", start, seed, minutes: 0.06, pace: 2.5, calmMs: 8_000 };
        const { violations, complaints } = await runFaults(run);
        found = { ...violations, complaints: complaints.length };
      }
      assert.ok((found[broken] ?? 0) > 0, `found only ${JSON.stringify(found)}`);
    });
  }
});
