/**
 * Forgets names that are in no use, a page at a time, so that the tables do not grow with the number of names ever used.
 * Any client does it, as it goes; no job has to be installed. Nothing waits for it and its failures mean nothing.
 */
import type { Clock, Timer } from "../../engine/clock.ts";
import type { Result, Row } from "./client.ts";
import { rowSets } from "./rows.ts";
import type { Statement, Values } from "./packet.ts";

export interface SweeperOptions {
  readonly clock: Clock;
  /** How long a name is remembered after its last use. */
  readonly rememberMs: number;
  readonly run: (names: readonly Statement[], values: Values) => Promise<readonly Result[]>;
  /** Clears away what has expired in the queue of a name. */
  readonly visit: (name: Uint8Array) => Promise<void>;
}

const PAGE = 1_000;
const PAGES_A_ROUND = 20;
/** Queues of the dead that are cleared per page. */
const FEW = 20;
const SHORTEST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 60_000;
const MICROS_PER_MS = 1_000;

export class Sweeper {
  readonly #options: SweeperOptions;
  #after: Uint8Array = Buffer.alloc(0);
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  /** Sweeps at intervals, until stopped: some pages each time, from where the last time ended. */
  start(): void {
    const { clock, rememberMs } = this.#options;
    const pauseMs = Math.min(Math.max(rememberMs / 4, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
    this.#timer = clock.after(pauseMs * (0.5 + clock.random()), () => void this.#round());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #round(): Promise<void> {
    try {
      for (let page = 0; page < PAGES_A_ROUND && !this.#stopped; page++) {
        if (!(await this.#page())) break;
      }
      if (!this.#stopped) await this.#options.run(["sweep-endings"], { page: PAGE });
    } catch {
      // The next round tries again.
    }
    if (!this.#stopped) this.start();
  }

  /** Sweeps one page; false at the end of the table. */
  async #page(): Promise<boolean> {
    const remember = Math.round(this.#options.rememberMs * MICROS_PER_MS);
    const values = { after: this.#after, page: PAGE, remember_us: remember, few: FEW };
    const results = await this.#options.run(["sweep-look"], values);
    const [found, idle = [], dead = []] = rowSets(results);
    for (const name of namesOf(dead)) await this.#options.visit(name);
    const names = namesOf(idle);
    if (names.length > 0) await this.#options.run(["sweep-names"], { names, remember_us: remember });
    const last = found?.[0]?.["last"];
    const full = Number(found?.[0]?.["names"]) === PAGE;
    this.#after = full && last instanceof Uint8Array ? last : Buffer.alloc(0);
    return full;
  }
}

function namesOf(rows: readonly Row[]): Uint8Array[] {
  return rows.map((row) => row["name"]).filter((name) => name instanceof Uint8Array);
}
