/** What `holdfast run` was asked to do. */
import { nameProblem } from "../engine/name.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";

export interface RunOptions {
  readonly name: string;
  readonly command: readonly string[];
  readonly shared: boolean;
  /** Absent: one at a time. */
  readonly permits: number | undefined;
  /** Further names, held all or none. */
  readonly also: readonly string[];
  /** Absent: for ever. 0: do not wait. */
  readonly waitMs: number | undefined;
  readonly busyCode: number;
  readonly ttlMs: number;
  readonly atLeastMs: number;
  readonly maxHoldMs: number | undefined;
  readonly killAfterMs: number;
  /** Stay in the terminal's process group. */
  readonly foreground: boolean;
  /** Busy is what one expects: not a word about it. */
  readonly quietWhenBusy: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
}

const DEFAULT_TTL_MS = 30_000;
const SHORTEST_TTL_MS = 100;
const LONGEST_TTL_MS = 86_400_000;
const MOST_PERMITS = 1_000_000;
const DEFAULT_KILL_AFTER_MS = 5_000;
const SHELL = "/bin/sh";

/** Errors: `UsageError`. */
export function readRunOptions(given: Arguments, stdinIsTerminal: boolean): RunOptions {
  const name = readName(given, 1);
  const command = readCommand(given);
  const once = given.time("once");
  const ttlMs = given.time("ttl") ?? DEFAULT_TTL_MS;
  if (ttlMs < SHORTEST_TTL_MS || ttlMs > LONGEST_TTL_MS) throw given.wrong("ttl", "goes from 100ms to 24h");
  return {
    name,
    command,
    shared: given.has("shared"),
    permits: readPermits(given),
    also: readAlso(given),
    waitMs: readWait(given),
    busyCode: readBusyCode(given, once === undefined ? EXIT.busy : EXIT.ok),
    ttlMs,
    atLeastMs: readAtLeast(given, once),
    maxHoldMs: readMaxHold(given),
    killAfterMs: readKillAfter(given, ttlMs),
    foreground: given.has("foreground") || stdinIsTerminal,
    quietWhenBusy: once !== undefined || given.has("quiet"),
    quiet: given.has("quiet"),
    verbose: given.has("verbose"),
  };
}

/** NAME, the first of at most `most` words. Errors: `UsageError`. */
export function readName(given: Arguments, most: number): string {
  const [name] = given.positionals;
  const { words, command } = given;
  if (name === undefined) throw new UsageError("NAME is missing", [command.name, "NAME", ...words]);
  const extra = given.positionals[most];
  if (extra !== undefined) {
    throw new UsageError(`${JSON.stringify(extra)} is one word too many`, [
      command.name,
      ...given.positionals.slice(0, most),
    ]);
  }
  const problem = nameProblem(name);
  if (problem !== undefined) throw new UsageError(problem);
  return name;
}

function readCommand(given: Arguments): readonly string[] {
  const line = given.text("command");
  if (line !== undefined) {
    if (given.rest !== undefined) throw new UsageError("takes either -c 'SHELL LINE' or -- COMMAND, not both");
    return [SHELL, "-c", line];
  }
  if (given.rest === undefined || given.rest.length === 0) {
    const before = given.rest === undefined ? given.words : given.words.slice(0, given.words.indexOf("--"));
    throw new UsageError("COMMAND is missing", [given.command.name, ...before, "--", "COMMAND"]);
  }
  return given.rest;
}

function readPermits(given: Arguments): number | undefined {
  const text = given.text("permits");
  if (text === undefined) return undefined;
  const permits = Number(text);
  if (!/^\d+$/.test(text) || permits < 1 || permits > MOST_PERMITS) {
    throw given.wrong("permits", `is a number from 1 to ${MOST_PERMITS}`);
  }
  if (given.has("shared")) throw new UsageError("--permits and --shared exclude each other: --shared has no limit");
  if (given.has("also")) throw new UsageError("--permits and --also exclude each other");
  return permits;
}

function readAlso(given: Arguments): readonly string[] {
  const names = given.texts("also");
  for (const name of names) {
    const problem = nameProblem(name);
    if (problem !== undefined) throw given.wrong("also", problem);
  }
  return names;
}

function readWait(given: Arguments): number | undefined {
  const waitMs = given.time("wait");
  const noWait = given.has("no-wait");
  if (given.has("once") && waitMs !== undefined) throw new UsageError("--once does not wait: leave out --wait");
  if (noWait && waitMs !== undefined) throw new UsageError("--no-wait and --wait exclude each other");
  return noWait || given.has("once") ? 0 : waitMs;
}

function readBusyCode(given: Arguments, otherwise: number): number {
  const text = given.text("busy-code");
  if (text === undefined) return otherwise;
  if (!/^\d{1,3}$/.test(text) || Number(text) > 255) throw given.wrong("busy-code", "is an exit code from 0 to 255");
  return Number(text);
}

function readAtLeast(given: Arguments, once: number | undefined): number {
  const atLeast = given.time("at-least");
  if (once !== undefined && atLeast !== undefined) throw new UsageError("--once TIME stands for --at-least TIME too");
  const ms = once ?? atLeast ?? 0;
  if (ms > LONGEST_TTL_MS) throw given.wrong(once === undefined ? "at-least" : "once", "is at most 24h");
  return ms;
}

function readMaxHold(given: Arguments): number | undefined {
  const maxHoldMs = given.time("max-hold");
  if (maxHoldMs === 0) throw given.wrong("max-hold", "must be more than 0");
  return maxHoldMs;
}

/** By default 5 s, or half of a shorter lease. */
function readKillAfter(given: Arguments, ttlMs: number): number {
  const killAfterMs = given.time("kill-after");
  if (killAfterMs === undefined) return Math.min(DEFAULT_KILL_AFTER_MS, ttlMs / 2);
  if (killAfterMs <= ttlMs / 2) return killAfterMs;
  throw given.wrong(
    "kill-after",
    `is at most half of --ttl (${ttlMs / 2}ms): the other half is for renewing the lease`,
  );
}
