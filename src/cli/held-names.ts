/** HOLDFAST_HELD: what this run and those around it hold, so that a run inside a run does not wait for itself. */
import { EXIT, Failure } from "./exit-codes.ts";
import { printable } from "./shell-words.ts";

export const HELD_VARIABLE = "HOLDFAST_HELD";

/** Name to token, the outermost run first. */
export type HeldNames = ReadonlyMap<string, string>;

/** Reads HOLDFAST_HELD. Errors: `Failure` 78 when it is not what an outer run has written. */
export function readHeldNames(text: string | undefined): HeldNames {
  if (text === undefined || text === "") return new Map();
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return new Map(Object.entries(value).map(([name, token]) => [name, String(token)]));
    }
  } catch {
    // said below
  }
  throw new Failure(EXIT.config, `${HELD_VARIABLE} is set by an outer holdfast run and is not JSON of this form`);
}

/** The JSON for COMMAND. One line: JSON escapes line ends. */
export function writeHeldNames(outer: HeldNames, tokens: ReadonlyMap<string, bigint>): string {
  const own = [...tokens].map(([name, token]) => [name, String(token)] as const);
  return JSON.stringify(Object.fromEntries([...outer, ...own]));
}

/** Refuses what would wait for itself. Errors: `Failure` 64. */
export function checkNotHeld(outer: HeldNames, name: string): void {
  const token = outer.get(name);
  if (token === undefined) return;
  const shown = printable(name);
  throw new Failure(
    EXIT.usage,
    `${shown} is already held by an outer run (token ${token} in ${HELD_VARIABLE}): this one would wait for itself`,
  );
}
