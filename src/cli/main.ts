#!/usr/bin/env node
/** The command line: finds the command and loads only what it needs. */
import { type Arguments, parseArguments, UsageError } from "./arguments.ts";
import { COMMANDS, commandNamed } from "./commands.ts";
import { EXIT, exitCodeOf, Failure, QuietExit } from "./exit-codes.ts";
import { nearest } from "./nearest.ts";
import { sayLast } from "./report.ts";

type Handler = (given: Arguments) => Promise<number>;

const HANDLERS: Record<string, () => Promise<Handler>> = {
  run: async () => (await import("./run.ts")).run,
  lead: async () => (await import("./lead.ts")).lead,
  ls: async () => (await import("./ls.ts")).ls,
  show: async () => (await import("./show.ts")).show,
  evict: async () => (await import("./evict.ts")).evict,
  sql: async () => (await import("./sql.ts")).sql,
  completion: async () => (await import("./completion.ts")).completion,
};

async function main(words: readonly string[]): Promise<number> {
  const [name, ...rest] = words;
  if (name === undefined || name === "-h" || name === "--help" || name === "help") {
    const { printOverview } = await import("./help.ts");
    return await printOverview(name === undefined ? EXIT.usage : EXIT.ok);
  }
  if (name === "--version") return await (await import("./help.ts")).printVersion();
  const command = commandNamed(name);
  const load = HANDLERS[name];
  if (command === undefined || load === undefined) throw unknownCommand(name, rest);
  checkNode(process.versions.node);
  const given = parseArguments(command, rest);
  if (given.has("help")) return await (await import("./help.ts")).printHelp(command);
  if (given.has("version")) return await (await import("./help.ts")).printVersion();
  return await (
    await load()
  )(given);
}

/** npm only warns of an engine that is too old; without this, a missing module would say it less clearly. */
function checkNode(version: string): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 13)) return;
  throw new Failure(EXIT.config, `needs Node 22.13 or later, this is ${version} (${process.execPath})`);
}

function unknownCommand(name: string, rest: readonly string[]): UsageError {
  const problem = name.startsWith("-") ? `${name} goes behind the command` : `there is no command ${name}`;
  const known = COMMANDS.map((command) => command.name);
  const meant = nearest(name, known);
  if (meant !== undefined) return new UsageError(problem, [meant, ...rest]);
  if (!name.startsWith("-") && rest.includes("--")) return new UsageError(problem, ["run", name, ...rest]);
  return new UsageError(`${problem}; there are ${known.join(", ")}`);
}

/** Resolves to the exit code, when all has been said. */
async function outcome(): Promise<number> {
  try {
    return await main(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof QuietExit)) await sayLast(error instanceof Error ? error.message : String(error));
    return exitCodeOf(error);
  }
}

// No `await` out here: the bundle is CommonJS.
void outcome().then((code) => process.exit(code));
