/**
 * The examples of the documentation: every ```ts block of README.md and docs/, as a program of its own, and every ```sh block
 * that begins with `#!`, as a script.
 *
 * A block that cannot be run says why in a comment just above it: `<!-- example: types only: REASON -->` (compiled, not
 * run) or `<!-- example: text only: REASON -->` (an excerpt).
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT: string = join(import.meta.dirname, "../..");

export type Treatment = "run" | "types only" | "text only";

export interface Example {
  /** `docs/guide/mutex.md:12` */
  readonly where: string;
  readonly language: "ts" | "sh";
  readonly code: string;
  readonly treatment: Treatment;
  readonly reason: string;
}

const DOCUMENTS = ["README.md", "docs/**/*.md"];
const MARK = /^<!-- example: (types only|text only): (.+) -->$/;

export function examplesOf(document: string): Example[] {
  const lines = readFileSync(join(ROOT, document), "utf8").split("\n");
  const examples: Example[] = [];
  for (let at = 0; at < lines.length; at++) {
    const language = /^```(ts|sh)$/.exec(lines[at] ?? "")?.[1] as Example["language"] | undefined;
    if (language === undefined || (language === "sh" && !lines[at + 1]?.startsWith("#!"))) continue;
    const end = lines.indexOf("```", at);
    if (end < 0) throw new Error(`${document}:${at + 1}: the block has no end`);
    const before = lines.slice(0, at).findLast((line) => line.trim() !== "") ?? "";
    const [, treatment = "run", reason = ""] = MARK.exec(before) ?? [];
    const code = lines.slice(at + 1, end).join("\n");
    examples.push({ where: `${document}:${at + 1}`, language, code, treatment: treatment as Treatment, reason });
    at = end;
  }
  return examples;
}

export function allExamples(): Example[] {
  return DOCUMENTS.flatMap((pattern) => globSync(pattern, { cwd: ROOT }).sort()).flatMap(examplesOf);
}

/** The source that a name of the package stands for. */
const SOURCES: readonly [RegExp, string][] = [
  [/^holdfast$/, "src/index.ts"],
  [/^holdfast\/(engines\/[a-z]+|fence|testing|zookeeper)$/, "src/$1/index.ts"],
];

/** Imports of the package become imports of its source, and addresses of servers those of private ones. */
export function asProgram(code: string, servers: Readonly<Record<string, string>> = {}): string {
  const resolved = code.replaceAll(
    /(\bfrom\s+|\bimport\s*\(\s*)"(holdfast[^"]*)"/g,
    (whole, before: string, name: string) => {
      const source = SOURCES.find(([pattern]) => pattern.test(name));
      return source === undefined ? whole : `${before}"${join(ROOT, name.replace(source[0], source[1]))}"`;
    },
  );
  const addressed = Object.entries(servers).reduce((text, [from, to]) => text.replaceAll(from, to), resolved);
  return `${addressed}\nexport {};\n`;
}

/** Whether the program needs a runtime with explicit resource management: Node 24. */
export function needsUsing(code: string): boolean {
  return /^\s*(await\s+)?using\s+\w+\s*=/m.test(code);
}
