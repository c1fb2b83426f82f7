/** Makes a failing program as short as it gets. */
import type { Program, Step } from "./program.ts";

/**
 * Leaves out as many steps as it can while `fails` still says so: halves first, then ever smaller pieces, then single ones.
 * Source: delta debugging ("ddmin") by A. Zeller and R. Hildebrandt. At most `mostRuns` runs.
 */
export async function shrink(
  program: Program,
  fails: (program: Program) => Promise<boolean>,
  mostRuns = 400,
): Promise<Program> {
  let { steps } = program;
  let pieces = 2;
  for (let runs = 0; steps.length > 1 && runs < mostRuns;) {
    const size = Math.ceil(steps.length / pieces);
    let shorter: readonly Step[] | undefined;
    for (let at = 0; at < steps.length && runs < mostRuns; at += size, runs++) {
      const rest = [...steps.slice(0, at), ...steps.slice(at + size)];
      if (!(await fails({ ...program, steps: rest }))) continue;
      shorter = rest;
      break;
    }
    if (shorter !== undefined) {
      steps = shorter;
      pieces = Math.max(pieces - 1, 2);
    } else if (size === 1) break;
    else pieces = Math.min(pieces * 2, steps.length);
  }
  return { ...program, steps };
}
