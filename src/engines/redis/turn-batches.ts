/**
 * Calls of scripts that are made in one turn of the event loop go out as few runs of them: a command costs more than
 * what it does. The first goes at once, those behind it together at the end of the turn: nothing waits for longer than
 * for the promises that are ready to go on. Calls on one key are carried out in the order in which they were made,
 * whatever their scripts. See docs/decisions/0009-redis-shared-runs.md.
 */
import { RedisReplyError } from "../../redis/index.ts";
import type { Written } from "./script-runner.ts";

/**
 * So many are not gathered any longer: enough to be worth a run, few enough that the server works on one while we make the
 * next, and serves others in between.
 */
const LARGEST_RUN = 16;

export type Arguments = [string, ...string[]];

/** A script that takes many calls. */
export interface SharedScript {
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
  readonly slot: number;
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
      const call = { script, shared, key, slot: this.#slotOf(key), args, resolve, reject };
      if (this.#gathered === undefined) {
        this.#gathered = [];
        process.nextTick(this.#endTurn);
        run([call]);
      } else if (this.#gathered.push(call) === LARGEST_RUN) {
        this.flush();
      }
    });
  }

  /** Sends now what has been gathered: before a command that is not to overtake it. */
  flush(): void {
    if (this.#gathered === undefined || this.#gathered.length === 0) return;
    const gathered = this.#gathered;
    this.#gathered = [];
    for (const calls of runsOf(gathered)) run(calls);
  }

  readonly #endTurn = (): void => {
    this.flush();
    this.#gathered = undefined;
  };
}

function runsOf(gathered: readonly Call[]): Call[][] {
  const runs: Call[][] = [];
  for (const call of gathered) {
    const joined = runToJoin(runs, call);
    if (joined === undefined) runs.push([call]);
    else joined.push(call);
  }
  return runs;
}

/** The last run of its kind, unless a call on the same key stands in a later run. */
function runToJoin(runs: readonly Call[][], { script, shared, key, slot }: Call): Call[] | undefined {
  for (let at = runs.length - 1; at >= 0; at--) {
    const run = runs[at] ?? [];
    const [first] = run;
    if (first?.script === script && first.slot === slot && first.shared === shared) return run;
    if (run.some((other) => other.key === key)) return undefined;
  }
  return undefined;
}

function run(calls: readonly Call[]): void {
  const [first] = calls;
  if (first === undefined) return;
  const keys: Arguments = [first.key];
  const args: Arguments = [first.shared, ...first.args];
  for (let n = 1; n < calls.length; n++) {
    const { key, args: own } = calls[n] ?? first;
    keys.push(key);
    for (const each of own) args.push(each);
  }
  first.script.run(keys, args).then(
    ({ reply, replicated }) => {
      const answers = first.script.answersOf(reply, calls.length);
      for (let n = 0; n < calls.length; n++) calls[n]?.resolve({ reply: answers[n], replicated });
    },
    (error: unknown) => {
      // What is wrong with one key must not fail the others; a call that was carried out may be carried out again.
      if (calls.length > 1 && isAnswer(error)) for (const each of calls) run([each]);
      else for (const { reject } of calls) reject(error);
    },
  );
}

/** Whether the server has answered with an error. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof RedisReplyError;
}
