/**
 * Visits every state that a model can reach, breadth first, so that a violation comes with a shortest way to it. States are
 * short byte strings; of those already seen 64 bits of a hash are kept (two states in a billion billion fall together).
 */
/** `step`: what happened, as a number that the model can put into words. `violation`: the promise that it broke. */
export type Emit = (next: Uint8Array, step: number, violation?: string) => void;

export interface Model {
  /** Bytes of a state. */
  readonly size: number;
  initial(): Uint8Array;
  /** Calls `emit` for every state that one step leads to; the bytes may be reused afterwards. */
  steps(state: Uint8Array, emit: Emit): void;
  label(step: number): string;
  /** The same state with interchangeable parts in a fixed order, or the state itself. */
  canonical(state: Uint8Array): Uint8Array;
  describe(state: Uint8Array): string;
}

export interface Exploration {
  readonly states: number;
  /** False: there were more states than allowed, the rest was not looked at. */
  readonly complete: boolean;
  readonly violation: string | undefined;
  /** How the violation comes about, a line for each step. */
  readonly trace: readonly string[];
}

const CHUNK = 1 << 16;

export function explore(model: Model, mostStates = 5_000_000): Exploration {
  const seen = new HashSet(mostStates);
  const states = new StateList(model.size);
  let violation: string | undefined;
  let current = -1;
  const emit: Emit = (next, step, wrong) => {
    if (violation !== undefined) return;
    const canonical = model.canonical(next);
    // The state that breaks the promise is kept even if it was reached before: it is the last one.
    if (!seen.add(canonical) && wrong === undefined) return;
    states.push(canonical, current, step);
    violation = wrong;
  };
  emit(model.initial(), 0);
  for (current = 0; current < states.length; current++) {
    if (violation !== undefined) break;
    if (states.length > mostStates) return { states: states.length, complete: false, violation, trace: [] };
    model.steps(states.get(current), emit);
  }
  return {
    states: states.length,
    complete: true,
    violation,
    trace: violation === undefined ? [] : trace(model, states),
  };
}

function trace(model: Model, states: StateList): string[] {
  const lines: string[] = [];
  for (let index = states.length - 1; index > 0; index = states.parentOf(index)) {
    lines.unshift(`${model.label(states.stepOf(index))}  ${model.describe(states.get(index))}`);
  }
  return lines;
}

class StateList {
  readonly #size: number;
  readonly #states: Uint8Array[] = [];
  readonly #parents: Int32Array[] = [];
  readonly #steps: Uint32Array[] = [];
  length = 0;

  constructor(size: number) {
    this.#size = size;
  }

  push(state: Uint8Array, parent: number, step: number): void {
    const chunk = Math.floor(this.length / CHUNK);
    const at = this.length % CHUNK;
    if (at === 0) {
      this.#states.push(new Uint8Array(CHUNK * this.#size));
      this.#parents.push(new Int32Array(CHUNK));
      this.#steps.push(new Uint32Array(CHUNK));
    }
    this.#states[chunk]?.set(state, at * this.#size);
    (this.#parents[chunk] as Int32Array)[at] = parent;
    (this.#steps[chunk] as Uint32Array)[at] = step;
    this.length++;
  }

  get(index: number): Uint8Array {
    const at = (index % CHUNK) * this.#size;
    return (this.#states[Math.floor(index / CHUNK)] as Uint8Array).subarray(at, at + this.#size);
  }

  parentOf(index: number): number {
    return this.#parents[Math.floor(index / CHUNK)]?.[index % CHUNK] ?? -1;
  }

  stepOf(index: number): number {
    return this.#steps[Math.floor(index / CHUNK)]?.[index % CHUNK] ?? 0;
  }
}

/** Open addressing over two 32-bit hashes; doubles when half full. */
class HashSet {
  #bits: number;
  #low: Uint32Array;
  #high: Uint32Array;
  #count = 0;

  constructor(expected: number) {
    this.#bits = Math.min(20, Math.max(10, Math.ceil(Math.log2(expected * 2))));
    this.#low = new Uint32Array(1 << this.#bits);
    this.#high = new Uint32Array(1 << this.#bits);
  }

  /** False when it was there. */
  add(state: Uint8Array): boolean {
    let low = 0x811c9dc5;
    let high = 0x9e3779b9;
    for (let index = 0; index < state.length; index++) {
      const byte = state[index] as number;
      low = Math.imul(low ^ byte, 0x01000193);
      high = Math.imul((high + byte + 0x7f4a7c15) ^ (high >>> 15), 0x85ebca6b);
      high ^= high >>> 13;
    }
    low = mix(low);
    // 0 marks a free place.
    high = mix(high) || 1;
    if (!this.#insert(low, high)) return false;
    if (++this.#count * 2 > this.#low.length) this.#grow();
    return true;
  }

  #insert(low: number, high: number): boolean {
    const mask = this.#low.length - 1;
    for (let at = (low ^ Math.imul(high, 31)) & mask; ; at = (at + 1) & mask) {
      const there = this.#high[at];
      if (there === 0) {
        this.#low[at] = low;
        this.#high[at] = high;
        return true;
      }
      if (there === high && this.#low[at] === low) return false;
    }
  }

  #grow(): void {
    const [low, high] = [this.#low, this.#high];
    this.#bits++;
    this.#low = new Uint32Array(1 << this.#bits);
    this.#high = new Uint32Array(1 << this.#bits);
    for (let at = 0; at < high.length; at++) {
      const there = high[at] as number;
      if (there !== 0) this.#insert(low[at] as number, there);
    }
  }
}

function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
