/** What a run found. */
import type { Judged } from "../../../src/testing/history/index.ts";

export interface RunResult {
  readonly engine: string;
  readonly deployment: string;
  readonly seed: number;
  readonly minutes: number;
  /** How many of each kind. */
  readonly faults: Readonly<Record<string, number>>;
  readonly requests: number;
  readonly grants: number;
  readonly writes: number;
  readonly violations: Partial<Readonly<Record<Judged, number>>>;
  /** S1 broken while a fault had broken an assumption, by fault. */
  readonly excused: Readonly<Record<string, number>>;
  /** What was left over, leaked, or went wrong in a way that no promise has a name for. */
  readonly complaints: readonly string[];
  /** The violations as a person reads them. */
  readonly pictures: readonly string[];
}

export const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((all, each) => all + each, 0);

/** Whether a run broke nothing that it may not. */
export function isClean({ violations, complaints }: RunResult): boolean {
  return sum(violations) === 0 && complaints.length === 0;
}
