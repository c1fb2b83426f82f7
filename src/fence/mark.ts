/** Tokens as guards compare them: by epoch first, then by number. */
import { ConfigError } from "../engine/errors.ts";
import type { LockMode } from "../engine/queue.ts";

/**
 * What a holder shows to a guard: its `HeldLock`, or the token alone. Guards are for exclusive holders: of several shared
 * ones the latest would shut out the others, so a shared lock is refused with `ConfigError`.
 */
export type Fencing =
  bigint | { readonly token: bigint; readonly mode?: LockMode | undefined; readonly epoch?: number | undefined };

export interface FenceOptions {
  /**
   * Counts the lock engines that the guarded thing has outlived. Tokens are compared within one epoch, and any token of a
   * higher epoch is later. Add one when the tokens may begin anew (another engine, a rebuilt ensemble), everywhere at once.
   * Default 0; at most 2,147,483,647.
   */
  epoch?: number | undefined;
}

export interface Mark {
  readonly epoch: number;
  readonly token: bigint;
}

const LARGEST_EPOCH = 2 ** 31 - 1;
const LARGEST_TOKEN = 2n ** 63n - 1n;

export function checkEpoch(epoch: number): number {
  if (Number.isInteger(epoch) && epoch >= 0 && epoch <= LARGEST_EPOCH) return epoch;
  throw new ConfigError(`epoch must be an integer from 0 to ${LARGEST_EPOCH}, not ${String(epoch)}`);
}

/** Checks what a holder shows. Errors: `TypeError`, `ConfigError`. */
export function markOf(fencing: Fencing, defaultEpoch: number): Mark {
  const { token, mode, epoch = defaultEpoch } = typeof fencing === "bigint" ? { token: fencing } : fencing;
  if (typeof token !== "bigint") throw new TypeError("a guard takes a held lock, or its token (a bigint)");
  if (token < 0n || token > LARGEST_TOKEN) throw new ConfigError(`${token} is no fencing token`);
  if (mode === "shared") throw new ConfigError("a guard is for exclusive holders: this lock is shared");
  return { epoch: checkEpoch(epoch), token };
}

/** Whether `mark` is of a holder before the one that left `seen`. */
export function isStale(mark: Mark, seen: Mark): boolean {
  return mark.epoch === seen.epoch ? mark.token < seen.token : mark.epoch < seen.epoch;
}
