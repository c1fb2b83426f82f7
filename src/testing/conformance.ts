/**
 * The conformance kit: every promise of the model, every option and every sentence of the interface, as cases for any
 * engine and any test runner. `registerConformance` (node-test.ts) hands them to node:test.
 */
import { systemClock } from "../engine/clock.ts";
import { disturbs, lacking, missing, type Case, type CaseDefinition, type Covered } from "./case.ts";
import { CASES } from "./cases/index.ts";
import { within } from "./expect.ts";
import { Stage } from "./stage.ts";
import { StallWatch } from "./stalls.ts";
import type { Subject } from "./subject.ts";

/** How many times its patience a case may last. */
const LONGEST_CASE = 3;
const STALL_MS = 200;
const MOST_REPEATS = 2;

/** The cases for `subject`, in the order of the model. `subject.start` must have been called before they run. */
export function conformanceCases(subject: Subject): Case[] {
  return CASES.map((definition) => caseFor(subject, definition));
}

function caseFor(subject: Subject, definition: CaseDefinition): Case {
  const { id, needs } = definition;
  const promise = id.slice(0, id.indexOf("/")) as Covered;
  const trait = lacking(subject.traits, needs);
  if (trait !== undefined) {
    const { otherwise } = definition;
    if (otherwise === undefined) return notApplicable(definition, promise, `not promised (trait ${trait})`);
    const { title, body } = otherwise;
    const refusing = { id, promise, title, incidents: [], needs: {}, status: "refuses", alone: false } as const;
    return { ...refusing, run: () => run(subject, id, body) };
  }
  const lack = missing(subject, needs);
  if (lack !== undefined) return notApplicable(definition, promise, lack);
  const { title, body, incidents = [] } = definition;
  const running = { id, promise, title, incidents, needs, status: "runs", alone: disturbs(needs) } as const;
  return { ...running, run: () => run(subject, id, body) };
}

function notApplicable({ id, title, needs }: CaseDefinition, promise: Covered, why: string): Case {
  const status = `not applicable: ${why}` as const;
  return { id, promise, title, incidents: [], needs, status, alone: false, run: async () => {} };
}

/**
 * Runs a case. When it fails while this process was starved of processor time (leases then end although nobody is at
 * fault) it is asked again, up to twice, at half the pace; a failure on a machine that keeps up is a failure.
 */
async function run(subject: Subject, id: string, body: (stage: Stage) => Promise<void>): Promise<void> {
  for (let repeats = 0; ; repeats++) {
    const stalls = new StallWatch();
    try {
      await runOnce(new Stage(subject, id, 2 ** repeats), body);
      return;
    } catch (error) {
      if (stalls.end() < STALL_MS || repeats === MOST_REPEATS) throw error;
    } finally {
      stalls.end();
    }
  }
}

async function runOnce(stage: Stage, body: (stage: Stage) => Promise<void>): Promise<void> {
  const alive = systemClock.stayAlive();
  try {
    await within(LONGEST_CASE * stage.hangMs, "the case", body(stage));
  } finally {
    await stage.end();
    alive.cancel();
  }
}
