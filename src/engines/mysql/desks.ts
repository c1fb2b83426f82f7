/** The few desks of a process: more of them only when lines grow. Commits of several desks share a flush of the server's log. */
import { Desk, type DeskOptions } from "./desk.ts";

/** A line of this length is worth one more connection. */
const LONG_LINE = 3;

export class Desks {
  readonly #options: DeskOptions;
  readonly #most: number;
  readonly #desks: Desk[];

  constructor(options: DeskOptions, most: number) {
    this.#options = options;
    this.#most = most;
    this.#desks = [new Desk(options)];
  }

  /** The desk with the shortest line. */
  pick(): Desk {
    let best = this.#desks[0] ?? this.#add();
    for (const desk of this.#desks) {
      if (desk.load < best.load) best = desk;
    }
    return best.load >= LONG_LINE && this.#desks.length < this.#most ? this.#add() : best;
  }

  /** Whether the bell's session is ours and alive. */
  holds(prefix: string): boolean {
    return this.#desks.some((desk) => desk.bells.prefix === prefix);
  }

  close(): void {
    for (const desk of this.#desks) desk.close();
  }

  #add(): Desk {
    const desk = new Desk(this.#options);
    this.#desks.push(desk);
    return desk;
  }
}
