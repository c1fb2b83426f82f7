/** Finds COMMAND before anything is locked, so that a typing mistake costs nobody a wait. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { EXIT, Failure } from "./exit-codes.ts";
import { printable } from "./shell-words.ts";

/** What `execvp` uses when PATH is not set. */
const DEFAULT_PATH = "/usr/bin:/bin";

/** Errors: `Failure` 127 when there is no such file, 126 when it is there and cannot be executed. */
export function checkExecutable(command: string, path: string | undefined): void {
  const shown = printable(command);
  if (command === "") throw new Failure(EXIT.notFound, "COMMAND is an empty word");
  const inPath = !command.includes("/");
  const places = inPath
    ? (path ?? DEFAULT_PATH).split(delimiter).map((folder) => join(folder || ".", command))
    : [command];
  let blocked: string | undefined;
  for (const place of places) {
    const kind = look(place);
    if (kind === "executable") return;
    if (kind !== "absent") blocked ??= kind;
  }
  if (blocked !== undefined) throw new Failure(EXIT.cannotExecute, `cannot execute ${shown}: ${blocked}`);
  const where = inPath ? `not found in PATH (${path ?? DEFAULT_PATH})` : "no such file";
  throw new Failure(EXIT.notFound, `${shown}: ${where}`);
}

function look(file: string): "executable" | "absent" | "it is a directory" | "permission denied" {
  try {
    if (!statSync(file).isFile()) return "it is a directory";
    accessSync(file, constants.X_OK);
    return "executable";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "EACCES" ? "permission denied" : "absent";
  }
}
