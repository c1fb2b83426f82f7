/** `holdfast evict NAME TOKEN`: ends a holder by hand. The token says which one, so that nobody evicts the next one by mistake. */
import { type Arguments, UsageError } from "./arguments.ts";
import { EXIT, Failure } from "./exit-codes.ts";
import { print, printJson } from "./output.ts";
import { readName } from "./run-options.ts";
import { printable } from "./shell-words.ts";
import { chooseStore, openLocks } from "./store.ts";

export async function evict(given: Arguments): Promise<number> {
  const name = readName(given, 2);
  const [, text] = given.positionals;
  if (text === undefined)
    throw new UsageError("TOKEN is missing (holdfast show NAME tells it)", ["evict", name, "TOKEN"]);
  if (!/^\d{1,19}$/.test(text)) throw new UsageError(`TOKEN is a number, not ${JSON.stringify(text)}`);
  const token = BigInt(text);
  const locks = await openLocks(chooseStore(given, process.env));
  try {
    const evicted = await locks.evict(name, token);
    if (given.has("json")) await printJson(evicted ? [{ name, token: String(token) }] : []);
    if (!evicted) throw new Failure(EXIT.failure, `nobody holds ${printable(name)} with token ${token}`);
    if (!given.has("json")) await print(`evicted the holder of ${printable(name)} with token ${token}\n`);
    return 0;
  } finally {
    await locks.close();
  }
}
