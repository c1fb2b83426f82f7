/**
 * Re-entrancy for the scoped form: a request inside a callback that holds the name goes on under the same hold.
 * Ownership follows the async context, not a thread or process, which an asynchronous program shares between many tasks.
 */
import { ClosedError } from "../engine/errors.ts";
import type { HeldLock } from "./held-lock.ts";
import type { Scope } from "./nesting.ts";
import type { Requests } from "./requests.ts";
import type { Wanted } from "./options.ts";

/**
 * Runs `run` inside the hold of `scope`, behind the branches that entered it before. The hold is released when the
 * outermost callback and all branches have ended; a branch that comes later is refused with `ClosedError`.
 */
export async function reenter<T>(
  requests: Requests,
  scope: Scope,
  wanted: Wanted,
  run: (lock: HeldLock | null) => T,
): Promise<Awaited<T>> {
  const { hold, handle } = scope;
  if (!scope.open) {
    throw new ClosedError(`lock ${JSON.stringify(hold.name)}, which this branch was inside of, has been released`);
  }
  wanted.signal?.throwIfAborted();
  if (wanted.ifAvailable && scope.branches.busy) return await run(null);
  const turn = scope.branches.turn.bind(scope.branches);
  const end = await requests.inTime(hold.name, wanted, turn);
  try {
    if (hold.loss !== undefined || hold.released) throw hold.notHeld();
    return await requests.runInside(hold, handle, true, run);
  } finally {
    end();
  }
}
