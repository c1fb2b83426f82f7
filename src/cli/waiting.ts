/** What is said while `holdfast run` waits, and when it has waited in vain. */
import { LockTimeoutError } from "../engine/errors.ts";
import type { LockManager } from "../index.ts";
import { Failure, QuietExit } from "./exit-codes.ts";
import { describeHolder } from "./holders.ts";
import { say, stderrIsTerminal } from "./report.ts";
import type { RunOptions } from "./run-options.ts";
import { printable } from "./shell-words.ts";
import { scopeOf, type Store } from "./store.ts";

/** On a terminal a wait that lasts longer than this is explained. */
const EXPLAIN_AFTER_MS = 1_000;

/** Says whom we wait for, after a second. Returns a function that takes that back. */
export function explainWait(locks: LockManager, options: RunOptions, store: Store): () => void {
  if (options.quiet || !(options.verbose || stderrIsTerminal())) return () => {};
  let over = false;
  const timer = setTimeout(() => {
    void holderOrNothing(locks, options.name).then((holder) => {
      const scope = options.verbose ? scopeOf(store) : "";
      if (!over && holder !== undefined) say(`waiting for ${printable(options.name)}, ${holder}${scope}`);
    });
  }, EXPLAIN_AFTER_MS);
  return () => {
    over = true;
    clearTimeout(timer);
  };
}

/** A time-out becomes "busy", with the name of the holder; other errors stay what they are. */
export async function busyOr(error: unknown, locks: LockManager, options: RunOptions, store: Store): Promise<unknown> {
  if (!(error instanceof LockTimeoutError)) return error;
  if (options.quietWhenBusy) return new QuietExit(options.busyCode);
  const holder = await holderOrNothing(locks, error.lockName);
  const described = holder === undefined ? "" : `: ${holder}`;
  return new Failure(options.busyCode, `${printable(error.lockName)} is busy${described}${scopeOf(store)}`);
}

async function holderOrNothing(locks: LockManager, name: string): Promise<string | undefined> {
  try {
    return await describeHolder(locks, name);
  } catch {
    return undefined; // who it is is a courtesy; the wait, or the answer "busy", stands without it
  }
}
