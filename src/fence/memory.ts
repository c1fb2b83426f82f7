/** A guard for something in this process's memory. */
import { StaleTokenError } from "../engine/errors.ts";
import { checkEpoch, type FenceOptions, type Fencing, isStale, type Mark, markOf } from "./mark.ts";

export interface MemoryFenceOptions extends FenceOptions {
  /** For messages. Default "memory". */
  name?: string | undefined;
}

export interface MemoryFence {
  /** Before the first read. From now on every lower token is refused. Errors: `StaleTokenError`. */
  enter(fencing: Fencing): void;
  /**
   * Checks and changes in one step, so `change` has to be synchronous. Resolves to nothing: returns what it returns.
   * Errors: `StaleTokenError`, and `change` does not run; `TypeError` when `change` turns out to be asynchronous.
   */
  write<T>(fencing: Fencing, change: () => T): T;
}

class WatermarkFence implements MemoryFence {
  readonly #name: string;
  readonly #epoch: number;
  #seen: Mark | undefined;

  constructor({ name = "memory", epoch = 0 }: MemoryFenceOptions) {
    this.#name = name;
    this.#epoch = checkEpoch(epoch);
  }

  enter(fencing: Fencing): void {
    const mark = markOf(fencing, this.#epoch);
    if (this.#seen !== undefined && isStale(mark, this.#seen)) {
      throw new StaleTokenError(this.#name, mark.token, this.#seen.token);
    }
    this.#seen = mark;
  }

  write<T>(fencing: Fencing, change: () => T): T {
    this.enter(fencing);
    const result = change();
    if (typeof (result as { then?: unknown } | null | undefined)?.then === "function") {
      throw new TypeError("a fenced change in memory must be synchronous: after an await others may have entered");
    }
    return result;
  }
}

/** A guard of one thing: make one for each. Lasts as long as the process, like what it guards. */
export function memoryFence(options: MemoryFenceOptions = {}): MemoryFence {
  return new WatermarkFence(options);
}
