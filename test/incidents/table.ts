/** The table of docs/incidents.md, and who proves its rows: tests by their names, cases of the conformance kit by their data. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { conformanceCases } from "../../src/testing/conformance.ts";
import { ENGINES, subjectsOf } from "../conformance/extent.ts";

const ROOT = join(import.meta.dirname, "../..");

const PARTS: readonly string[] = ["cli", "recipes"];

export interface Row {
  readonly number: number;
  /** Engines, and parts of the library that have tests of their own. */
  readonly on: readonly string[];
}

/** A test, or a case of the kit, that proves a row on an engine. */
export interface Proof {
  readonly number: number;
  readonly on: string;
  readonly by: string;
}

export function rows(): Row[] {
  const text = readFileSync(join(ROOT, "docs/incidents.md"), "utf8");
  return [...text.matchAll(/^\| *(\d+) *\|[^|]+\|[^|]+\|([^|]+)\|$/gm)].map(([, number, on = ""]) => ({
    number: Number(number),
    on: on
      .trim()
      .split(/ +/)
      .flatMap((word) => (word === "all" ? ENGINES : [word])),
  }));
}

export function isKnown(name: string): boolean {
  return ENGINES.includes(name) || PARTS.includes(name);
}

/** Which engine or part the tests of a file are about. */
function subjectOf(path: string): string | undefined {
  const [, folder = "", second = ""] = path.split("/");
  if (folder === "engines") return second;
  if (folder === "unit" && second === "recipes") return "recipes";
  return isKnown(folder) ? folder : undefined;
}

/** A string that begins like this is the name of a test: `incident 38: …`, `incidents 5, 11: …`. */
const NAME = /["'`]incidents? (\d+(?:, \d+)*): [^"'`\n]*/g;

export function namedTests(): Proof[] {
  return globSync("test/**/*.test.ts", { cwd: ROOT }).flatMap((path) => {
    const on = subjectOf(path);
    if (on === undefined) return [];
    const names = readFileSync(join(ROOT, path), "utf8").matchAll(NAME);
    return [...names].flatMap(([name, numbers = ""]) =>
      numbers.split(", ").map((number) => ({ number: Number(number), on, by: `${path}: ${name.slice(1)}` })),
    );
  });
}

/** What the short run asks: of the first deployment of each engine. */
export async function kitCases(): Promise<Proof[]> {
  const proofs: Proof[] = [];
  for (const on of ENGINES) {
    const [subject] = await subjectsOf(on);
    if (subject === undefined) continue;
    for (const { id, status, incidents } of conformanceCases(subject)) {
      if (status === "runs") proofs.push(...incidents.map((number) => ({ number, on, by: `kit: ${id}` })));
    }
  }
  return proofs;
}
