/** TIME on the command line: a number with a unit, so that nobody has to guess between seconds and milliseconds. */

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds, or what is wrong with it and (where one can tell) what was meant. */
export type Duration = { readonly ms: number } | { readonly problem: string; readonly fixed?: string | undefined };

/** Reads `500ms`, `30s`, `1.5m`, `1h` or `0`. */
export function parseDuration(text: string): Duration {
  if (text === "0") return { ms: 0 };
  const [, digits, unit] = /^(\d+(?:\.\d+)?)([a-z]*)$/i.exec(text) ?? [];
  if (digits === undefined || unit === undefined) {
    return { problem: `${JSON.stringify(text)} is not a time such as 500ms, 30s, 10m or 1h` };
  }
  if (unit === "") return { problem: `${text} has no unit`, fixed: `${text}s` };
  const factor = UNIT_MS[unit];
  if (factor === undefined) return { problem: `${text} has an unknown unit`, fixed: knownUnit(Number(digits), unit) };
  const ms = Math.round(Number(digits) * factor);
  if (!Number.isSafeInteger(ms)) return { problem: `${text} is too long` };
  return { ms };
}

function knownUnit(amount: number, unit: string): string | undefined {
  const lower = unit.toLowerCase();
  if (UNIT_MS[lower] !== undefined) return `${amount}${lower}`;
  if (/^d(ays?)?$/.test(lower)) return `${amount * 24}h`;
  const first = /^(s|m|h)(ec|econd|in|inute|r|our)?s?$/.exec(lower)?.[1];
  return first === undefined ? undefined : `${amount}${first}`;
}

/** For people: 1.5 s, 3 min. */
export function describeMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Number((ms / 1_000).toFixed(1))} s`;
  return `${Number((ms / 60_000).toFixed(1))} min`;
}
