/**
 * The node of a request, `<owner>-<mode>-lock-<sequence>`, and the queue that the children of a container are. Order is by the
 * sequence alone. The end of the name is as Curator writes it, so Curator sees our requests in their place.
 */
import type { Wish } from "../../engine/queue.ts";

/** The server's counter sticks near 2^31, or wraps; suffixes from here on, and negative ones, are never valid. */
export const FIRST_INVALID_SEQUENCE: number = 2 ** 31 - 2 ** 16;

export interface RequestNode extends Wish {
  /** Of the child, not its path. */
  readonly name: string;
  readonly sequence: number;
  /** Undefined for a node of somebody else's lock on the same path. */
  readonly owner: string | undefined;
}

const OURS = /^([\w-]{22})-(x|r|s([1-9]\d*))-lock-(-?\d+)$/;
/** What other libraries' locks end in. A dash in front of ten digits belongs to the name: Curator's end in `lock-0000000012`. */
const OTHERS = /(\d{10})$/;

export function nodePrefix(owner: string, { mode, limit }: Wish): string {
  const letter = mode === "exclusive" ? "x" : limit === Infinity ? "r" : `s${limit}`;
  return `${owner}-${letter}-lock-`;
}

export function parseNode(name: string): RequestNode | undefined {
  const ours = OURS.exec(name);
  if (ours !== null) {
    const [, owner, letter, permits, sequence] = ours;
    const exclusive = letter === "x";
    const limit = exclusive ? 1 : permits === undefined ? Infinity : Number(permits);
    return { name, owner, mode: exclusive ? "exclusive" : "shared", limit, sequence: Number(sequence) };
  }
  const sequence = OTHERS.exec(name)?.[1];
  if (sequence === undefined) return undefined;
  // Whatever it means there, for us it is an exclusive request: waiting for it is safe.
  return { name, owner: undefined, mode: "exclusive", limit: 1, sequence: Number(sequence) };
}

export function isValid(sequence: number): boolean {
  return sequence >= 0 && sequence < FIRST_INVALID_SEQUENCE;
}

/** The valid requests among `children`, in the order of the queue. */
export function queueOf(children: readonly string[]): RequestNode[] {
  const queue: RequestNode[] = [];
  for (const child of children) {
    const node = parseNode(child);
    if (node !== undefined && isValid(node.sequence)) queue.push(node);
  }
  return queue.sort((left, right) => left.sequence - right.sequence);
}
