/**
 * Which generation of a name's container to use. A parent's sequence counter ends near 2^31: then requests go on in the next
 * generation, and the used-up one is kept by a marker for ever, so that it cannot vanish and start again at 0.
 */

/** A persistent child: the generation is used up. */
export const SEALED = "sealed";
const MOST_NAMES = 10_000;

export class Generations {
  /** Only names that are past their first generation: hardly ever any. */
  readonly #current = new Map<string, number>();

  /** All generations before it have been seen without any valid request, after they were sealed. */
  of(name: string): number {
    return this.#current.get(name) ?? 0;
  }

  /** Every generation before `generation` is drained. Forgetting a name costs a look at each of them again. */
  drained(name: string, generation: number): void {
    if (generation <= this.of(name)) return;
    if (this.#current.size >= MOST_NAMES) this.#current.clear();
    this.#current.set(name, generation);
  }
}
