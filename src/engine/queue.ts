/**
 * The rule, pure: *the queue is the lock*. A name has a first-in-first-out queue of requests and the held ones are
 * always a prefix of it. Engines that compute the rule, the checker and the simulation all call these functions;
 * engines that compute it elsewhere (Lua, SQL) are tested against them.
 *
 * Source: the Web Locks API (W3C) for the queue on one machine; ZooKeeper's lock recipe for "wait for those ahead".
 */

export type LockMode = "exclusive" | "shared";

/** What the rule needs to know of a request. */
export interface Wish {
  readonly mode: LockMode;
  /**
   * How many shared requests may be held at once, as this request sees it: a semaphore's permits, `Infinity` for
   * a reader. Exclusive requests carry 1.
   */
  readonly limit: number;
}

/**
 * How long the held prefix of `queue` has to be, when its first `held` requests are held now. Never shorter than
 * `held`: the rule grants, it does not take away. Cost: the length of the answer.
 */
export function heldPrefix(queue: readonly Wish[], held = 0): number {
  let length = 0;
  let smallest = Infinity;
  for (const wish of queue) {
    if (length >= held && !joins(wish, length, smallest, queue[0])) break;
    smallest = Math.min(smallest, limitOf(wish));
    length++;
  }
  return length;
}

/** Whether `wish` may join a prefix of `length` requests whose smallest limit is `smallest` and whose head is `head`. */
function joins(wish: Wish, length: number, smallest: number, head: Wish | undefined): boolean {
  if (length === 0 || head === undefined) return true;
  if (wish.mode === "exclusive" || head.mode === "exclusive") return false;
  return length < Math.min(smallest, wish.limit);
}

function limitOf(wish: Wish): number {
  return wish.mode === "exclusive" ? 1 : wish.limit;
}

/**
 * The same rule as a waiter sees it: whether the request at `index` may be held, all those ahead of it being
 * still there. Equivalent to `index < heldPrefix(queue)` and used by engines that ask one request at a time.
 */
export function mayHold(queue: readonly Wish[], index: number): boolean {
  return index < heldPrefix(queue.slice(0, index + 1));
}

/**
 * Whom the pending request at `index` has to watch: positions in `queue`, nearest first, such that it cannot be
 * granted before at least one of them is gone. A mutex watches the one just ahead, a reader the nearest exclusive
 * one, a request that needs fewer than n others ahead any n of those ahead. Empty when it may be held now.
 */
export function watched(queue: readonly Wish[], index: number): number[] {
  const wish = queue[index];
  if (wish === undefined || mayHold(queue, index)) return [];
  if (wish.mode === "exclusive") return [index - 1];
  let strictest = index;
  let smallest = wish.limit;
  for (let ahead = index - 1; ahead >= 0; ahead--) {
    const other = queue[ahead];
    if (other?.mode === "exclusive") return [ahead];
    if (other !== undefined && other.limit < smallest) {
      smallest = other.limit;
      strictest = ahead;
    }
  }
  // Only shared requests ahead. The one with the smallest limit is among those watched: its leaving may raise the limit.
  const positions = strictest === index ? [] : [strictest];
  for (let ahead = index - 1; ahead >= 0 && positions.length < smallest; ahead--) {
    if (ahead !== strictest) positions.push(ahead);
  }
  return positions.sort((left, right) => right - left);
}
