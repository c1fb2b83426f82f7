/**
 * Calls of one script that are made in one turn of the event loop go out as few runs of it: a command costs more than
 * what it does. The first goes at once, those behind it together at the end of the turn: nothing waits for longer than
 * for the promises that are ready to go on. See docs/decisions/0007-redis-shared-runs.md.
 */
import { RedisReplyError } from "../../redis/index.ts";
import type { Written } from "./script-runner.ts";

/** Calls in one run: enough to be worth it; the server serves others in between, and works while we take the answers. */
const LARGEST_RUN = 16;

export interface Call {
  /** The key of the name. */
  readonly key: string;
  readonly args: readonly string[];
}

interface Waiting extends Call {
  readonly shared: string;
  readonly resolve: (written: Written) => void;
  readonly reject: (error: unknown) => void;
}

export interface TurnBatchesOptions {
  /** Runs the script on the calls' keys, with their arguments behind the one that they share. */
  readonly run: (keys: Arguments, args: Arguments) => Promise<Written>;
  /** The answers to so many calls, in order, from the reply of the script. */
  readonly answersOf: (reply: unknown, count: number) => readonly unknown[];
  /** Calls on keys with the same number may go together. */
  readonly slotOf: (key: string) => number;
}

export type Arguments = [string, ...string[]];

export class TurnBatches {
  readonly #options: TurnBatchesOptions;
  /** Those behind the first of this turn; undefined between turns. */
  #gathered: Waiting[] | undefined;

  constructor(options: TurnBatchesOptions) {
    this.#options = options;
  }

  /** `shared` is an argument that all calls of one run have in common. Resolves to the call's own answer. */
  call(shared: string, key: string, args: readonly string[]): Promise<Written> {
    return new Promise((resolve, reject) => {
      const waiting = { shared, key, args, resolve, reject };
      if (this.#gathered !== undefined) {
        this.#gathered.push(waiting);
        return;
      }
      this.#gathered = [];
      process.nextTick(this.#flush);
      this.#run([waiting]);
    });
  }

  readonly #flush = (): void => {
    const gathered = this.#gathered ?? [];
    this.#gathered = undefined;
    if (gathered.length === 0) return;
    const groups = Map.groupBy(gathered, ({ shared, key }) => `${this.#options.slotOf(key)} ${shared}`);
    for (const group of groups.values()) {
      for (let from = 0; from < group.length; from += LARGEST_RUN) this.#run(group.slice(from, from + LARGEST_RUN));
    }
  };

  #run(batch: readonly [Waiting] | readonly Waiting[]): void {
    const [first, ...others] = batch;
    if (first === undefined) return;
    const keys: Arguments = [first.key];
    const args: Arguments = [first.shared, ...first.args];
    for (const each of others) {
      keys.push(each.key);
      args.push(...each.args);
    }
    this.#options.run(keys, args).then(
      ({ reply, replicated }) => {
        const answers = this.#options.answersOf(reply, batch.length);
        for (let n = 0; n < batch.length; n++) batch[n]?.resolve({ reply: answers[n], replicated });
      },
      (error: unknown) => {
        // What is wrong with one key must not fail the others; a call that was carried out may be carried out again.
        if (others.length > 0 && isAnswer(error)) for (const each of batch) this.#run([each]);
        else for (const { reject } of batch) reject(error);
      },
    );
  }
}

/** Whether the server has answered with an error. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof RedisReplyError;
}
