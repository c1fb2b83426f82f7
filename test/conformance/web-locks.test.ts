/**
 * Random programs run on Node's own Web Locks (`navigator.locks`, in Node since 24) and on ours: who is granted, in which
 * order, who is refused and with what, has to be the same after every step.
 *
 * Where we differ on purpose: a victim of `steal` rejects when its callback has settled, theirs at once; and its error
 * is a LockStolenError. Known defects of Node's: `query()` lists held locks in no order, and only this thread's; an aborted
 * signal is looked at before the other arguments, where the specification has it the other way round; and a pending
 * request that was aborted keeps its place, and holds up readers, until it comes to the front. So programs that abort
 * pending requests are compared with exclusive ones only, where its ghost makes no difference.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import * as threads from "node:worker_threads";
import * as fc from "fast-check";
import { connect, HoldfastError } from "../../src/index.ts";

interface Snapshot {
  readonly held?: readonly { readonly name?: string; readonly mode?: string }[];
  readonly pending?: readonly { readonly name?: string; readonly mode?: string }[];
}

/** What both have in common. */
interface WebLocks {
  request(name: string, options: object, callback: (lock: object | null) => unknown): Promise<unknown>;
  query(): Promise<Snapshot>;
}

const oracle = (threads as unknown as { readonly locks?: WebLocks }).locks;

type Step =
  | {
      readonly do: "request";
      readonly name: string;
      readonly mode: Mode;
      readonly kind: "wait" | "ifAvailable" | "steal" | "signal" | "aborted";
      /** A combination that is refused: the option of another kind on top. */
      readonly also?: "ifAvailable" | "steal" | "signal";
    }
  | { readonly do: "finish"; readonly which: number; readonly how: "return" | "throw" }
  | { readonly do: "abort"; readonly which: number };

const names = ["a", "b", "-c"];
const name = fc.oneof({ weight: 12, arbitrary: fc.constant("a") }, { weight: 4, arbitrary: fc.constantFrom(...names) });
type Mode = "exclusive" | "shared";

function programs(...modes: Mode[]): fc.Arbitrary<Step[]> {
  const common = { do: fc.constant("request" as const), name, mode: fc.constantFrom(...modes) };
  const kind = fc.oneof(
    { weight: 4, arbitrary: fc.constant("wait" as const) },
    { weight: 4, arbitrary: fc.constantFrom("ifAvailable" as const, "signal" as const) },
    { weight: 1, arbitrary: fc.constantFrom("steal" as const, "aborted" as const) },
  );
  const request = fc
    .record({ ...common, kind })
    .map((step) => (step.kind === "aborted" ? { ...step, name: "a" } : step));
  const refused = fc.record({
    ...common,
    kind: fc.constantFrom("ifAvailable" as const, "steal" as const),
    also: fc.constantFrom("ifAvailable" as const, "steal" as const, "signal" as const),
  });
  const which = fc.nat({ max: 30 });
  const how = fc.constantFrom("return" as const, "throw" as const);
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 9, arbitrary: request },
    { weight: 1, arbitrary: refused },
    { weight: 8, arbitrary: fc.record({ do: fc.constant("finish" as const), which, how }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("abort" as const), which }) },
  );
  return fc.array(step, { minLength: 1, maxLength: 25 });
}

/** One request of a program, while it runs. */
interface Running {
  readonly abort: AbortController;
  pending: boolean;
  finish: ((how: "return" | "throw") => void) | undefined;
  /** Held when a thief came: from then on only the end counts. */
  stolen: boolean;
}

/** Runs a program and tells, step by step, what happened. */
class Run {
  readonly #locks: WebLocks;
  readonly #prefix: string;
  readonly #abortsPending: boolean;
  readonly #requests: Running[] = [];
  readonly #holding = new Map<number, string>();
  #granted: string[] = [];
  #settled: string[] = [];
  #events = 0;

  constructor(locks: WebLocks, prefix: string, abortsPending: boolean) {
    this.#locks = locks;
    this.#prefix = prefix;
    this.#abortsPending = abortsPending;
  }

  async play(program: readonly Step[]): Promise<unknown[]> {
    const story: unknown[] = [];
    for (const step of program) {
      this.#take(step);
      story.push(await this.#told());
    }
    // To the end: whoever still holds finishes, until nobody is left.
    while (this.#requests.some((each) => each.finish !== undefined)) {
      for (const each of this.#requests) each.finish?.("return");
      story.push(await this.#told());
    }
    return story;
  }

  #take(step: Step): void {
    if (step.do === "request") this.#request(step);
    else {
      const running = this.#requests[step.which % Math.max(this.#requests.length, 1)];
      if (step.do === "finish") running?.finish?.(step.how);
      else if (running !== undefined && (this.#abortsPending || !running.pending)) {
        running.abort.abort(new Error(`abort ${step.which % this.#requests.length}`));
      }
    }
  }

  #request({ name, mode, kind, also }: Step & { do: "request" }): void {
    const index = this.#requests.length;
    const running: Running = { abort: new AbortController(), pending: true, finish: undefined, stolen: false };
    this.#requests.push(running);
    const uses = (option: string): boolean => kind === option || also === option;
    if (kind === "aborted") running.abort.abort(new Error(`aborted ${index}`));
    const options = {
      mode,
      ...(uses("ifAvailable") && { ifAvailable: true }),
      ...(uses("steal") && { steal: true }),
      ...((uses("signal") || kind === "aborted") && { signal: running.abort.signal }),
    };
    const promise = this.#locks.request(name.startsWith("-") ? name : this.#prefix + name, options, (lock) => {
      running.pending = false;
      this.#event(this.#granted, `${index} ${lock === null ? "null" : "granted"}`);
      if (lock === null) return "null";
      if (options.steal) this.#steal(name);
      this.#holding.set(index, name);
      return new Promise((resolve, reject) => {
        running.finish = (how) => {
          running.finish = undefined;
          this.#holding.delete(index);
          if (how === "return") resolve(`result ${index}`);
          else reject(new Error(`error ${index}`));
        };
      });
    });
    promise.then(
      (value) => this.#settle(running, `${index} resolved ${String(value)}`),
      (error: unknown) => this.#settle(running, `${index} rejected ${described(error)}`),
    );
  }

  #steal(name: string): void {
    for (const [index, held] of this.#holding) {
      const victim = this.#requests[index];
      if (held === name && victim !== undefined) victim.stolen = true;
    }
  }

  #settle(running: Running, what: string): void {
    running.pending = false;
    // Told with another error and at another time; that it does reject is checked here.
    if (running.stolen) assert.match(what, /rejected (AbortError|LockStolenError)/);
    else this.#event(this.#settled, what);
  }

  #event(list: string[], what: string): void {
    list.push(what);
    this.#events++;
  }

  /** Waits until nothing happens any more; then what happened and how things stand. */
  async #told(): Promise<unknown> {
    for (let quiet = 0, seen = this.#events; quiet < 3; quiet++) {
      await turn();
      if (seen !== this.#events) quiet = -1;
      seen = this.#events;
    }
    const { held = [], pending = [] } = await this.#locks.query();
    const own = ({ name = "" }: { readonly name?: string }): boolean => name.startsWith(this.#prefix);
    const line = ({ name = "", mode }: { readonly name?: string; readonly mode?: string }): string =>
      `${name.slice(this.#prefix.length)} ${mode}`;
    const told = {
      // Several in one step are readers that come in together: their callbacks may run in any order.
      granted: this.#granted.sort(),
      settled: this.#settled.sort(),
      held: held.filter(own).map(line).sort(),
      // In order for each name; which name comes first means nothing.
      pending: this.#abortsPending
        ? "ghosts"
        : names.map((name) => pending.filter((each) => own(each) && each.name === this.#prefix + name).map(line)),
    };
    this.#granted = [];
    this.#settled = [];
    return told;
  }
}

/** An error as far as both tell the same: the abort's reason, the callback's own, or the name of a refusal. */
function described(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const ofTheProgram = /^(abort|aborted|error) \d+$/.test(error.message);
  return ofTheProgram && !(error instanceof HoldfastError) ? error.message : error.name;
}

let runs = 0;

if (oracle === undefined) {
  void test(`NOT COMPARED: Node ${process.version} has no Web Locks of its own; run this on Node 24 or later`, (context) => {
    context.diagnostic("the oracle is missing: nothing was compared");
    console.error(
      `Web Locks: Node ${process.version} has no oracle to compare with; run this test on Node 24 or later.`,
    );
  });
} else {
  const compare = async (program: fc.Arbitrary<Step[]>, abortsPending: boolean): Promise<void> => {
    const ours = await connect("memory:");
    const check = async (steps: readonly Step[]): Promise<void> => {
      const prefix = `differential ${++runs} `;
      const theirStory = await new Run(oracle, prefix, abortsPending).play(steps);
      const ourStory = await new Run(ours, prefix, abortsPending).play(steps);
      assert.deepEqual(ourStory, theirStory);
    };
    await fc.assert(fc.asyncProperty(program, check), { numRuns: 400 });
    await ours.close();
  };

  void test("the same as Node's Web Locks, step by step: readers and writers", { timeout: 120_000 }, async () => {
    await compare(programs("exclusive", "shared"), false);
  });

  void test(
    "the same as Node's Web Locks, step by step: aborts of pending requests",
    { timeout: 120_000 },
    async () => {
      await compare(programs("exclusive"), true);
    },
  );

  void test("the checks of the arguments reject with the same names", async () => {
    const ours = await connect("memory:");
    const { signal } = new AbortController();
    const calls: unknown[][] = [
      [],
      ["x"],
      ["x", {}],
      ["x", {}, "callback"],
      ["x", { signal: null }, () => 1],
      ["x", { signal: {} }, () => 1],
      ["x", { mode: "upgrade" }, () => 1],
      ["-x", () => 1],
      ["x", { steal: true, ifAvailable: true }, () => 1],
      ["x", { steal: true, mode: "shared" }, () => 1],
      ["x", { steal: true, signal }, () => 1],
      ["x", { ifAvailable: true, signal }, () => 1],
      ["x", { signal: AbortSignal.abort("why") }, () => 1],
      ["x", () => 1],
      ["x", undefined, () => 1],
      ["x", null, () => 1],
      ["x", { mode: undefined, signal: undefined, steal: undefined, ifAvailable: undefined }, () => 1],
    ];
    const outcome = async (locks: unknown, parameters: unknown[]): Promise<string> => {
      const call = (locks as { request(...parameters: unknown[]): Promise<unknown> }).request(...parameters);
      return await call.then(
        (value) => `resolved ${String(value)}`,
        (error: unknown) => `rejected ${error instanceof Error ? error.name : String(error)}`,
      );
    };
    for (const parameters of calls) {
      assert.equal(await outcome(ours, parameters), await outcome(oracle, parameters), JSON.stringify(parameters));
    }
    await ours.close();
  });
}
