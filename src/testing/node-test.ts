/** Hands the conformance kit to node:test. */
import { after, before, describe, test } from "node:test";
import { systemClock } from "../engine/clock.ts";
import type { Case } from "./case.ts";
import { conformanceCases } from "./conformance.ts";
import type { Subject } from "./subject.ts";

export interface ConformanceOptions {
  /** How many cases run at the same time; those that disturb the whole engine always run alone. Default 8. */
  readonly concurrency?: number | undefined;
  /** A case that has not settled by then failed, in ms. Default 60,000. */
  readonly timeoutMs?: number | undefined;
}

/** Registers every case for `subject` as a test. What is not applicable is said by name in the test's diagnostics. */
export function registerConformance(subject: Subject, options: ConformanceOptions = {}): void {
  const { concurrency = 8, timeoutMs: timeout = 60_000 } = options;
  const cases = conformanceCases(subject);
  const register = (each: Case): void => {
    void test(`${each.id}: ${each.title}${against(each)}`, { timeout }, async (context) => {
      if (each.status !== "runs") context.diagnostic(`${each.id}: ${each.status}`);
      await each.run();
    });
  };
  void describe(`conformance of ${subject.name}`, { concurrency: 1 }, () => {
    const startMs = systemClock.monotonicMs();
    before(async () => await subject.start?.());
    after(async () => await subject.stop?.());
    void describe("side by side", { concurrency }, () => cases.filter((each) => !each.alone).forEach(register));
    void describe("alone", { concurrency: 1 }, () => cases.filter((each) => each.alone).forEach(register));
    void test("what was asked of this engine", (context) => {
      for (const line of summary(cases)) context.diagnostic(line);
      context.diagnostic(`the kit took ${Math.round(systemClock.monotonicMs() - startMs)} ms`);
    });
  });
}

function against({ incidents }: Case): string {
  if (incidents.length === 0) return "";
  return ` (incident${incidents.length > 1 ? "s" : ""} ${incidents.join(", ")})`;
}

function summary(cases: readonly Case[]): string[] {
  const count = (status: string): number => cases.filter((each) => each.status === status).length;
  const others = cases.filter((each) => each.status.startsWith("not applicable"));
  return [
    `${cases.length} cases: ${count("runs")} run, ${count("refuses")} refusals, ${others.length} not applicable`,
    ...others.map((each) => `${each.id}: ${each.status}`),
  ];
}
