/** From words to options. Every mistake is answered with the line as it should have been. */
import { parseArgs } from "node:util";
import { type CommandSpec, type OptionSpec, optionsOf } from "./commands.ts";
import { parseDuration } from "./duration.ts";
import { EXIT, Failure } from "./exit-codes.ts";
import { nearest } from "./nearest.ts";
import { redactUrl } from "./secrets.ts";
import { shellLine } from "./shell-words.ts";

/** A mistake on the command line. `corrected` are the words after `holdfast` as they should have been. */
export class UsageError extends Failure {
  override readonly name: string = "UsageError";

  constructor(problem: string, corrected?: readonly string[]) {
    super(EXIT.usage, corrected === undefined ? problem : `${problem}: holdfast ${shellLine(safe(corrected))}`);
  }
}

/** What is shown again must not show a secret. */
function safe(words: readonly string[]): string[] {
  return words.map((word, at) => {
    if (words[at - 1] === "--url") return redactUrl(word);
    return word.startsWith("--url=") ? `--url=${redactUrl(word.slice(6))}` : word;
  });
}

export class Arguments {
  readonly command: CommandSpec;
  /** The words after the command's name, as given. */
  readonly words: readonly string[];
  readonly positionals: readonly string[];
  /** What stood after `--`; undefined without `--`. */
  readonly rest: readonly string[] | undefined;
  readonly #values: ReadonlyMap<string, Given>;

  constructor(
    command: CommandSpec,
    words: readonly string[],
    positionals: readonly string[],
    rest: readonly string[] | undefined,
    values: ReadonlyMap<string, Given>,
  ) {
    this.command = command;
    this.words = words;
    this.positionals = positionals;
    this.rest = rest;
    this.#values = values;
  }

  has(long: string): boolean {
    return this.#values.has(long);
  }

  text(long: string): string | undefined {
    return this.#values.get(long)?.value;
  }

  /** Every value of a repeatable option, in order. */
  texts(long: string): readonly string[] {
    return this.#values.get(long)?.all ?? [];
  }

  /** Milliseconds. Errors: `UsageError` with the corrected line. */
  time(long: string): number | undefined {
    const given = this.#values.get(long);
    if (given?.value === undefined) return undefined;
    const duration = parseDuration(given.value);
    if ("ms" in duration) return duration.ms;
    throw this.wrong(long, duration.problem, duration.fixed);
  }

  /** A usage error for the value of an option; `fixed` is what should have stood there. */
  wrong(long: string, problem: string, fixed?: string): UsageError {
    const given = this.#values.get(long);
    const message = `--${long} ${problem}`;
    if (fixed === undefined || given === undefined) return new UsageError(message);
    return new UsageError(message, [this.command.name, ...replaced(this.words, given, fixed)]);
  }
}

interface Given {
  /** Where the option stands in the words. */
  readonly at: number;
  readonly value?: string | undefined;
  readonly inline: boolean;
  /** This value and those given before it. */
  readonly all: readonly string[];
}

function replaced(words: readonly string[], given: Given, value: string): string[] {
  const corrected = [...words];
  if (!given.inline) {
    corrected[given.at + 1] = value;
    return corrected;
  }
  const word = corrected[given.at] ?? "";
  corrected[given.at] = word.slice(0, word.length - (given.value?.length ?? 0)) + value;
  return corrected;
}

/** Reads the words after `holdfast COMMAND`. Errors: `UsageError`. */
export function parseArguments(command: CommandSpec, words: readonly string[]): Arguments {
  const options = optionsOf(command);
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(options.map((option) => [option.long, parseArgsOption(option)])),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const values = new Map<string, Given>();
  const positionals: string[] = [];
  const end = tokens.find((token) => token.kind === "option-terminator")?.index;
  for (const token of tokens) {
    if (end !== undefined && token.index >= end) break;
    if (token.kind === "positional") {
      positionals.push(token.value);
      // COMMAND begins here and its options are not ours: all that is missing is the --.
      if (command.runs && positionals.length > 1) throw dashesMissing(command, words, token.index, values);
    } else if (token.kind === "option") {
      const all = [...(values.get(token.name)?.all ?? []), token.value ?? ""];
      const given = { at: token.index, value: token.value, inline: token.inlineValue === true, all };
      checkOption(command, options, token.rawName, token.name, given, words);
      values.set(token.name, given);
    }
  }
  const rest = end === undefined ? undefined : words.slice(end + 1);
  return new Arguments(command, words, positionals, rest, values);
}

function parseArgsOption(option: OptionSpec): { type: "string" | "boolean"; short?: string } {
  const type = option.argument === undefined ? "boolean" : "string";
  return option.short === undefined ? { type } : { type, short: option.short };
}

function dashesMissing(
  command: CommandSpec,
  words: readonly string[],
  at: number,
  values: ReadonlyMap<string, Given>,
): UsageError {
  if (values.has("command")) return new UsageError("takes either -c 'SHELL LINE' or -- COMMAND, not both");
  return new UsageError("put -- before COMMAND", [command.name, ...words.slice(0, at), "--", ...words.slice(at)]);
}

function checkOption(
  command: CommandSpec,
  options: readonly OptionSpec[],
  raw: string,
  long: string,
  given: Given,
  words: readonly string[],
): void {
  const spec = options.find((option) => option.long === long);
  if (spec === undefined) throw unknownOption(command, options, raw, given, words);
  if (spec.argument === undefined) {
    if (given.inline) throw new UsageError(`${raw} takes no value`, [command.name, ...withoutValue(words, given, raw)]);
    return;
  }
  const looksLikeOption = given.value?.startsWith("-") === true && !given.inline;
  if (given.value === undefined || given.value === "" || looksLikeOption) {
    throw new UsageError(`${raw} needs ${spec.argument}`);
  }
}

function withoutValue(words: readonly string[], given: Given, raw: string): string[] {
  return words.map((word, at) => (at === given.at ? raw : word));
}

function unknownOption(
  command: CommandSpec,
  options: readonly OptionSpec[],
  raw: string,
  given: Given,
  words: readonly string[],
): UsageError {
  const known = options.map((option) => `--${option.long}`);
  const meant = raw.startsWith("--") ? nearest(raw, known) : undefined;
  const problem = `there is no option ${raw}`;
  if (meant === undefined) return new UsageError(`${problem}; holdfast ${command.name} --help lists them`);
  const corrected = words.map((word, at) => (at === given.at ? word.replace(raw, meant) : word));
  return new UsageError(problem, [command.name, ...corrected]);
}
