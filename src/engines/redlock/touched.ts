/**
 * The nodes that one owner has asked for its lock, and what is still on its way to them. Commands of one connection stay in
 * order, except for one that has to be sent again because the node has forgotten the script: a release that overtook
 * it would leave a lock behind that nobody holds.
 */
import { type RedlockNode } from "./node.ts";

interface Asked {
  unanswered: number;
  whenAnswered: (() => void)[];
}

export class Touched {
  readonly #asked = new Map<RedlockNode, Asked>();
  #left = false;

  /** The owner has left: nothing may be asked for it any more. */
  get left(): boolean {
    return this.#left;
  }

  /** `node` has been sent a command that may set the lock. */
  add(node: RedlockNode, answer: Promise<unknown>): void {
    const asked = this.#asked.get(node) ?? { unanswered: 0, whenAnswered: [] };
    this.#asked.set(node, asked);
    asked.unanswered++;
    const answered = (): void => {
      if (--asked.unanswered > 0) return;
      for (const go of asked.whenAnswered.splice(0)) go();
    };
    answer.then(answered, answered);
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
    if (this.isAnswered(node)) go();
    else this.#asked.get(node)?.whenAnswered.push(go);
  }
}
