/** `holdfast completion bash|zsh|fish`: a script for the shell, made from the table of commands. */
import { type Arguments, UsageError } from "./arguments.ts";
import { bashCompletion } from "./completion-bash.ts";
import { fishCompletion } from "./completion-fish.ts";
import { zshCompletion } from "./completion-zsh.ts";
import { print } from "./output.ts";

const SHELLS: Record<string, () => string> = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

export async function completion(given: Arguments): Promise<number> {
  const [shell = "", ...more] = given.positionals;
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (script === undefined || more.length > 0) {
    throw new UsageError(`takes a shell: ${Object.keys(SHELLS).join(", ")}`, ["completion", "bash"]);
  }
  await print(script());
  return 0;
}
