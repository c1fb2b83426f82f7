/** Watches a queue from the server's side and compares every change with the pure rule. */
import { heldPrefix, type Wish } from "../../src/engine/queue.ts";

export interface Standing extends Wish {
  readonly owner: string;
  readonly token: bigint | undefined;
  /** The end of its lease, on the server's clock. */
  readonly expiresAtMs: number;
}

interface Before {
  readonly queue: readonly Standing[];
  readonly lastToken: bigint;
}

export class Witness {
  readonly #before = new Map<string, Before>();

  /** The queue of `name` is now `queue`, one verb after the last look. Returns what is against the rule. */
  look(name: string, queue: readonly Standing[], nowMs: number): string[] {
    const before = this.#before.get(name) ?? { queue: [], lastToken: 0n };
    const wrong = [...compare(before, queue, nowMs)].map((text) => `${text} in ${name}`);
    const tokens = queue.map(({ token }) => token ?? 0n);
    const lastToken = tokens.reduce((most, token) => (token > most ? token : most), before.lastToken);
    this.#before.set(name, { queue: [...queue], lastToken });
    return wrong;
  }
}

function* compare({ queue: earlier, lastToken }: Before, queue: readonly Standing[], nowMs: number): Generator<string> {
  // Whoever had run out and stands here again has queued anew, perhaps by a late repetition of its own request.
  const alive = (place: number): boolean => (earlier[place]?.expiresAtMs ?? -Infinity) > nowMs;
  const places = new Map(earlier.flatMap(({ owner }, place) => (alive(place) ? [[owner, place] as const] : [])));
  const present = new Set(queue.map(({ owner }) => owner));
  const gone = earlier.filter(({ owner }) => !present.has(owner));
  if (gone.filter(({ expiresAtMs }) => expiresAtMs > nowMs).length > 1) yield "S4: one verb has ended several requests";
  let last = -1;
  let heldBefore = 0;
  for (const { owner } of queue) {
    const place = places.get(owner) ?? earlier.length + queue.length;
    if (place < last) yield "order: somebody has overtaken";
    last = place;
    if (earlier[place]?.token !== undefined) heldBefore++;
  }
  const held = heldPrefix(queue, heldBefore);
  if (queue.some(({ token }, place) => (token !== undefined) !== place < held))
    yield `S1: ${held} requests are to be held, it is ${queue.map(({ token }) => (token === undefined ? "pending" : "held")).join(", ")}`;
  let highest = lastToken;
  for (const { token } of queue.slice(heldBefore)) {
    if (token === undefined) break;
    if (token <= highest) yield `S2: token ${token} after ${highest}`;
    highest = token;
  }
}
