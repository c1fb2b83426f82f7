/** Standard output of the commands that show something. */
import { isatty } from "node:tty";

const STDOUT = 1;

/** Writes to standard output. A reader that has gone (`| head -1`) is no error: it has seen enough. */
export async function print(text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    process.stdout.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EPIPE" ? resolve() : reject(error),
    );
    process.stdout.write(text, (error) => {
      if (error === null || error === undefined) resolve();
    });
  });
}

export async function printJson(value: readonly unknown[]): Promise<void> {
  await print(`${JSON.stringify(value, null, 2)}\n`);
}

export interface Look {
  readonly colour: boolean;
  /** The width to cut lines to; none where somebody else reads them. */
  readonly columns: number | undefined;
}

/** A terminal gets colour (not with NO_COLOR, see no-color.org) and lines that fit; everybody else gets everything. */
export function lookOf(environment: Readonly<Record<string, string | undefined>>): Look {
  if (!isatty(STDOUT)) return { colour: false, columns: undefined };
  const plain = (environment["NO_COLOR"] ?? "") !== "" || environment["TERM"] === "dumb";
  return { colour: !plain, columns: process.stdout.columns > 0 ? process.stdout.columns : undefined };
}
