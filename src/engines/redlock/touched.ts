/**
 * The nodes that one owner has asked for its lock, and what is still on its way to them. Commands of one connection stay in
 * order, except for one that has to be sent again because the node has forgotten the script: a release that overtook
 * it would leave a lock behind that nobody holds.
 */
import type { RedlockNode } from "./node.ts";

interface Asked {
  unanswered: number;
  whenAnswered: (() => void)[] | undefined;
}

export class Touched {
  readonly #asked = new Map<RedlockNode, Asked>();
  #left = false;

  /** The owner has left: nothing may be asked for it any more. */
  get left(): boolean {
    return this.#left;
  }

  /** `node` is sent a command that may set the lock. */
  asked(node: RedlockNode): void {
    const asked = this.#asked.get(node);
    if (asked === undefined) this.#asked.set(node, { unanswered: 1, whenAnswered: undefined });
    else asked.unanswered++;
  }

  /** One of those commands has its answer, or failed. */
  answered(node: RedlockNode): void {
    const asked = this.#asked.get(node);
    if (asked === undefined || --asked.unanswered > 0) return;
    const waiting = asked.whenAnswered;
    asked.whenAnswered = undefined;
    if (waiting !== undefined) for (const go of waiting) go();
  }

  /** The owner leaves. Returns the nodes that may hold its vote. */
  leave(): RedlockNode[] {
    this.#left = true;
    return [...this.#asked.keys()];
  }

  /** Whether nothing of the owner's is on its way to `node`. */
  isAnswered(node: RedlockNode): boolean {
    return (this.#asked.get(node)?.unanswered ?? 0) === 0;
  }

  /** Calls `go` when that is so: now, or later. */
  whenAnswered(node: RedlockNode, go: () => void): void {
    const asked = this.#asked.get(node);
    if (asked === undefined || asked.unanswered === 0) go();
    else (asked.whenAnswered ??= []).push(go);
  }
}
