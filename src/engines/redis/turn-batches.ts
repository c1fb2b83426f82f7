/**
 * Calls of scripts that are made in one turn of the event loop go out as few runs of them: a command costs more than
 * what it does. The first goes at once, those behind it together at the end of the turn: nothing waits for longer than
 * for the promises that are ready to go on. Calls on one key are carried out in the order in which they were made,
 * whatever their scripts. See docs/decisions/0009-redis-shared-runs.md.
 */
import { RedisReplyError } from "../../redis/index.ts";
import type { Written } from "./script-runner.ts";

/** Calls in one run: enough to be worth it; the server serves others in between, and works while we take the answers. */
const LARGEST_RUN = 16;

export type Arguments = [string, ...string[]];

/** A script that takes many calls. */
export interface SharedScript {
  readonly name: string;
  /** Runs it on the calls' keys, with their arguments behind the one that they share. */
  readonly run: (keys: Arguments, args: Arguments) => Promise<Written>;
  /** The answers to so many calls, in order, from its reply. */
  readonly answersOf: (reply: unknown, count: number) => readonly unknown[];
}

interface Call {
  readonly script: SharedScript;
  readonly shared: string;
  /** The key of the name. */
  readonly key: string;
  readonly args: readonly string[];
  readonly resolve: (written: Written) => void;
  readonly reject: (error: unknown) => void;
}

export class TurnBatches {
  readonly #slotOf: (key: string) => number;
  /** Those behind the first of this turn; undefined between turns. */
  #gathered: Call[] | undefined;

  /** Calls on keys with the same slot may go together. */
  constructor(slotOf: (key: string) => number) {
    this.#slotOf = slotOf;
  }

  /** `shared` is an argument that all calls of one run have in common. Resolves to the call's own answer. */
  call(script: SharedScript, shared: string, key: string, args: readonly string[]): Promise<Written> {
    return new Promise((resolve, reject) => {
      const call = { script, shared, key, args, resolve, reject };
      if (this.#gathered !== undefined) {
        this.#gathered.push(call);
        return;
      }
      this.#gathered = [];
      process.nextTick(this.#endTurn);
      run([call]);
    });
  }

  /** Sends now what has been gathered: before a command that is not to overtake it. */
  flush(): void {
    if (this.#gathered === undefined || this.#gathered.length === 0) return;
    const gathered = this.#gathered;
    this.#gathered = [];
    for (const calls of this.#runsOf(gathered)) run(calls);
  }

  readonly #endTurn = (): void => {
    this.flush();
    this.#gathered = undefined;
  };

  /** A call joins the last run of its kind, unless one on the same key stands in a later run. */
  #runsOf(gathered: readonly Call[]): Call[][] {
    const runs: Call[][] = [];
    const lastOfKind = new Map<string, number>();
    const lastOfKey = new Map<string, number>();
    for (const call of gathered) {
      const { script, shared, key } = call;
      const kind = `${script.name} ${this.#slotOf(key)} ${shared}`;
      let at = lastOfKind.get(kind) ?? -1;
      const last = runs[at];
      if (last === undefined || last.length === LARGEST_RUN || at < (lastOfKey.get(key) ?? 0)) {
        at = runs.push([call]) - 1;
        lastOfKind.set(kind, at);
      } else {
        last.push(call);
      }
      lastOfKey.set(key, at);
    }
    return runs;
  }
}

function run(calls: readonly Call[]): void {
  const [first, ...others] = calls;
  if (first === undefined) return;
  const keys: Arguments = [first.key];
  const args: Arguments = [first.shared, ...first.args];
  for (const each of others) {
    keys.push(each.key);
    args.push(...each.args);
  }
  first.script.run(keys, args).then(
    ({ reply, replicated }) => {
      const answers = first.script.answersOf(reply, calls.length);
      for (let n = 0; n < calls.length; n++) calls[n]?.resolve({ reply: answers[n], replicated });
    },
    (error: unknown) => {
      // What is wrong with one key must not fail the others; a call that was carried out may be carried out again.
      if (others.length > 0 && isAnswer(error)) for (const each of calls) run([each]);
      else for (const { reject } of calls) reject(error);
    },
  );
}

/** Whether the server has answered with an error. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof RedisReplyError;
}
