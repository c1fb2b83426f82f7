/** Processes that contend for one name, seen from their parent. */
import { fork, type ChildProcess } from "node:child_process";
import type { Running } from "../../harness.ts";
import type { Span } from "./contending.ts";

export interface Hold {
  readonly from: number;
  readonly to: number;
  readonly process: number;
  readonly worker: number;
}

/** What is counted of the holds, which come in the order of time. */
export type Tally = (holds: readonly Hold[]) => number;

/** How often the lock passes to somebody else: a poller mostly takes back what it has just released. */
export const handOffs: Tally = (holds) =>
  holds.filter((hold, index) => {
    const before = holds[index - 1];
    return before !== undefined && (before.process !== hold.process || before.worker !== hold.worker);
  }).length;

/** How often it passes to another process. */
export const betweenProcesses: Tally = (holds) =>
  holds.filter((hold, index) => index > 0 && holds[index - 1]?.process !== hold.process).length;

/** Throws, at the end of a round, when two were inside at once. */
export async function crowd(
  program: string,
  words: readonly string[],
  processes: number,
  tally: Tally,
): Promise<Running> {
  const children = Array.from({ length: processes }, () => fork(program, words));
  await Promise.all(children.map((child) => heard<"ready">(child)));
  const shares = children.map(() => 0);
  return {
    async run(ms) {
      const spans = children.map((child) => heard<Span[]>(child));
      for (const child of children) child.send(ms);
      const perProcess = await Promise.all(spans);
      const holds = perProcess
        .flatMap((each, process) => each.map(([from, to, worker]) => ({ from, to, worker, process })))
        .sort((left, right) => left.from - right.from);
      for (const [index, hold] of holds.entries()) {
        const before = holds[index - 1];
        if (before !== undefined && before.to > hold.from) throw new Error("two processes were inside at once");
        shares[hold.process] = (shares[hold.process] ?? 0) + 1;
      }
      return tally(holds);
    },
    notes: () => [fairness("process", shares)],
    async stop() {
      for (const child of children) child.disconnect();
      await Promise.all(children.map((child) => new Promise((resolve) => child.once("exit", resolve))));
    },
  };
}

/** How evenly the lock was shared, for people. */
export function fairness(who: string, shares: readonly number[]): string {
  return `one ${who} held it ${Math.min(...shares)} to ${Math.max(...shares)} times`;
}

function heard<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a contending process ended with ${String(code)}`));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      resolve(message as T);
    });
  });
}
