/** Chance from a seed: the same seed, the same numbers. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761) >>> 0 || 1;
    for (let turn = 0; turn < 8; turn++) this.next(); // small seeds begin alike
  }

  /** A number in [0, 1): xorshift32, by G. Marsaglia. */
  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state / 2 ** 32;
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  whole(below: number): number {
    return Math.floor(this.next() * below);
  }

  pick<T>(list: readonly [T, ...T[]] | readonly T[]): T {
    const picked = list[this.whole(list.length)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }
}
