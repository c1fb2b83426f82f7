/** --help and --version, from the table of commands. */
import { readFileSync } from "node:fs";
import { COMMANDS, type CommandSpec, type OptionSpec } from "./commands.ts";
import { EXIT } from "./exit-codes.ts";
import { print } from "./output.ts";

export async function printVersion(): Promise<number> {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { version: string };
  await print(`holdfast ${version}\n`);
  return EXIT.ok;
}

export async function printOverview(exitCode: number): Promise<number> {
  const lines = COMMANDS.flatMap(({ usage, summary }) =>
    usage.map((line, at) => (at === 0 ? `  holdfast ${line.padEnd(42)} ${summary}` : `  holdfast ${line}`)),
  );
  await print(`Runs commands under a lock.\n\n${lines.join("\n")}\n\nholdfast COMMAND --help tells more.\n`);
  return exitCode;
}

export async function printHelp(command: CommandSpec): Promise<number> {
  const usage = command.usage.map((line, at) => `${at === 0 ? "Usage:" : "      "} holdfast ${line}\n`).join("");
  const groups = command.groups.map(({ title, options }) => `\n${title}\n${options.map(optionLine).join("")}`);
  const summary = `${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.`;
  await print(`${usage}\n${summary}\n${groups.join("")}${command.runs ? RUN_NOTES : ""}`);
  return EXIT.ok;
}

function optionLine({ short, long, argument, help }: OptionSpec): string {
  const name = `${short === undefined ? "   " : `-${short},`} --${long}${argument === undefined ? "" : ` ${argument}`}`;
  return `  ${name.padEnd(28)} ${help}\n`;
}

const RUN_NOTES = `
TIME has a unit: 500ms 30s 10m 1h. COMMAND gets HOLDFAST_NAME, HOLDFAST_TOKEN and HOLDFAST_HELD.
Exit code: COMMAND's own; 128+n when a signal ended it or the wait; 64 usage, 69 store unreachable, 70 lock lost and
COMMAND stopped, 75 busy, 78 configuration, 124 --max-hold reached, 126 cannot execute, 127 not found.
`;
