/**
 * Names that nobody else uses just now. The number of a sequential node says how many children its container has had. So
 * whoever was the only child, has gone, and comes back with the very next number, knows without a look that nobody has
 * come in between: such a lock needs no listing. See docs/decisions/0008-zookeeper-shortcuts.md.
 */

/** A node of this session that was the only child of its container. */
export interface OnlyChild {
  readonly sequence: number;
  /** The transaction that created it. */
  readonly czxid: bigint;
}

/** Forgotten names are listed again, once. */
const MOST_NAMES = 10_000;
/** To start a counter again and bring it back to n takes at least n + this many transactions; see `follows`. */
const RESTART_TRANSACTIONS = 5;

export class Solitude {
  readonly #last = new Map<string, OnlyChild>();

  /** The server has confirmed that `child` is gone. */
  left(container: string, child: OnlyChild): void {
    if (this.#last.size >= MOST_NAMES) this.#last.clear();
    const { sequence, czxid } = child;
    this.#last.set(container, { sequence, czxid });
  }

  /**
   * The last one of ours in `container`, if a node created now may be known to follow it; forgotten here. `lastZxid`: the last
   * transaction that this session has seen.
   */
  take(container: string, lastZxid: bigint): OnlyChild | undefined {
    const last = this.#last.get(container);
    if (last === undefined) return undefined;
    this.#last.delete(container);
    return isRecent(last, lastZxid + 1n) ? last : undefined;
  }
}

/**
 * Whether `next` was created behind `last` with nobody in between, so that it is the only child now. An empty container may have
 * been removed and made anew, with its counter at 0. But then there were, between the two, at least the removals of `last` and
 * of the container, its creation, and the creations of all numbers up to that of `last`: more transactions than there were.
 */
export function follows(last: OnlyChild, next: OnlyChild): boolean {
  return next.sequence === last.sequence + 1 && isRecent(last, next.czxid);
}

function isRecent({ sequence, czxid }: OnlyChild, zxid: bigint): boolean {
  return zxid - czxid < BigInt(sequence + RESTART_TRANSACTIONS);
}
