/** Seeds of a world, all of which have to be clean. */
import assert from "node:assert/strict";
import { play, programOf, report, type SettingKind } from "./play.ts";

/** Plays seeds 1 to `seeds`; at least `least` locks must have been granted for each, on average. */
export async function keepPromises(kind: SettingKind, seeds: number, least = 20): Promise<void> {
  let grants = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const outcome = await play(programOf(seed, kind), kind);
    assert.deepEqual(outcome.complaints, [], outcome.complaints.length > 0 ? await report(outcome, kind) : "");
    grants += outcome.grants;
  }
  assert.ok(grants > seeds * least, `only ${grants} grants: the simulation has hardly locked anything`);
}
