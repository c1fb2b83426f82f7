/** One engine, one seed: servers, clients, faults; then calm, and everything is judged. */
import { existsSync, readFileSync } from "node:fs";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { temporaryDirectory } from "../../../servers/exit-cleanup.ts";
import { memoryFence, StaleTokenError, type MemoryFence } from "../../../src/fence/index.ts";
import {
  checkHistory,
  countByPromise,
  historyFile,
  HistoryRecorder,
  readHistory,
} from "../../../src/testing/history/index.ts";
import { Crowd } from "./crowd.ts";
import type { Deployment } from "./deployment.ts";
import { DEPLOYMENTS } from "./deployments/index.ts";
import { Dice } from "./dice.ts";
import { Mischief } from "./mischief.ts";
import { historyPath, troubleFile } from "./client.ts";
import { isClean, type RunResult } from "./result.ts";
import { ACCOUNTS } from "./worker.ts";

export interface RunOptions {
  readonly engine: string;
  /** Starts the servers. Default: those of `engine`. */
  readonly start?: ((dice: Dice) => Promise<Deployment>) | undefined;
  readonly seed: number;
  /** How long faults go on. */
  readonly minutes: number;
  /** How fast faults follow each other; 2: twice as fast. Default 1. */
  readonly pace?: number | undefined;
  /** When the faults are over, everybody is served within this many ms, or never. Default 40,000. */
  readonly calmMs?: number | undefined;
  /** Where the histories of a run that is not clean are kept. Default: nowhere. */
  readonly keep?: string | undefined;
  /** Called every few seconds. */
  readonly progress?: ((line: string) => void) | undefined;
}

const CLIENTS = 4;
const PROGRESS_EVERY_MS = 5_000;
const MOST_PICTURES = 12;
const CALM_MS = 40_000;

export async function runFaults(options: RunOptions): Promise<RunResult> {
  const start = options.start ?? DEPLOYMENTS[options.engine];
  if (start === undefined)
    throw new Error(`no engine ${options.engine}; there are ${Object.keys(DEPLOYMENTS).join(", ")}`);
  const directory = await temporaryDirectory("faults");
  const alive = setInterval(() => {}, 60_000); // no timer of a lock keeps a process alive
  try {
    const deployment = await start(new Dice(options.seed));
    try {
      const result = await new Run(deployment, directory.path, options).go();
      if (options.keep !== undefined && !isClean(result)) {
        await cp(directory.path, join(options.keep, `${options.engine}-${options.seed}`), { recursive: true });
      }
      return result;
    } finally {
      await deployment.stop();
    }
  } finally {
    await directory.remove();
    clearInterval(alive);
  }
}

class Run {
  readonly #deployment: Deployment;
  readonly #directory: string;
  readonly #options: RunOptions;
  readonly #judge: HistoryRecorder;
  readonly #crowd: Crowd;
  readonly #mischief: Mischief;
  readonly #complaints: string[] = [];
  readonly #fences = new Map<string, MemoryFence>();
  readonly #applied: { readonly resource: string; readonly write: string }[] = [];

  constructor(deployment: Deployment, directory: string, options: RunOptions) {
    this.#deployment = deployment;
    this.#directory = directory;
    this.#options = options;
    this.#judge = new HistoryRecorder("judge", historyFile(historyPath(directory, "judge")));
    const cradle = { deployment, directory, register: this.#register };
    this.#crowd = new Crowd(cradle, this.#judge, options.seed, CLIENTS);
    this.#mischief = new Mischief(deployment, this.#crowd, this.#judge, options.seed, options.pace ?? 1);
  }

  async go(): Promise<RunResult> {
    const { minutes, progress = () => {} } = this.#options;
    const endMs = performance.now() + minutes * 60_000;
    await this.#crowd.start();
    const talking = setInterval(() => progress(this.#line(endMs)), PROGRESS_EVERY_MS);
    try {
      await this.#mischief.until(endMs);
      progress("faults are over; waiting for calm");
      await this.#calm();
      progress("calm; judging");
    } finally {
      clearInterval(talking);
      await this.#crowd.end();
    }
    return await this.#verdict();
  }

  /** The guarded thing. It outlives all clients and servers. */
  readonly #register = async (resource: string, token: bigint, write: string): Promise<boolean> => {
    let fence = this.#fences.get(resource);
    if (fence === undefined) this.#fences.set(resource, (fence = memoryFence({ name: resource })));
    try {
      fence.write(token, () => this.#applied.push({ resource, write }));
      return true;
    } catch (error) {
      if (error instanceof StaleTokenError) return false;
      throw error;
    }
  };

  async #calm(): Promise<void> {
    await this.#step("the servers to serve", this.#deployment.serving());
    this.#mischief.calmed();
    let well = await this.#step("every request to have its answer", this.#crowd.finish());
    for (let account = 0; account < ACCOUNTS && well; account++)
      well = await this.#step(
        `every waiter of account-${account} to be served`,
        this.#crowd.lineUp(`account-${account}`),
      );
    if (!well) return;
    await this.#gone("left in the engine", () => this.#deployment.leftovers());
    await this.#step("the clients to close", this.#crowd.close(this.#complaints));
    await this.#gone("left at the servers", () => this.#deployment.remains());
  }

  async #step(what: string, done: Promise<unknown>): Promise<boolean> {
    const { calmMs = CALM_MS } = this.#options;
    const late = sleep(calmMs, false, { ref: false });
    const outcome = await Promise.race([
      done.then(
        () => true,
        (error: unknown) => {
          this.#complaints.push(`waiting for ${what}: ${error instanceof Error ? error.message : String(error)}`);
          return false;
        },
      ),
      late,
    ]);
    if (!outcome) this.#complaints.push(`${what}: not so after ${calmMs} ms`);
    return outcome;
  }

  /** Complains about what is still there when every lease must have ended. */
  async #gone(where: string, look: () => Promise<readonly string[]>): Promise<void> {
    const { ttlMs, roundingMs } = this.#deployment;
    const endMs = performance.now() + ttlMs + roundingMs + 5_000;
    let found = await look();
    while (found.length > 0 && performance.now() < endMs) {
      await sleep(100);
      found = await look();
    }
    this.#complaints.push(...found.map((each) => `${where}: ${each}`));
  }

  async #verdict(): Promise<RunResult> {
    for (const { resource, write } of this.#applied) this.#judge.tell({ kind: "applied", resource, write });
    this.#judge.tell({ kind: "ended" });
    this.#judge.close();
    const files = (await readdir(this.#directory)).filter((file) => file.endsWith(".jsonl"));
    const { ttlMs, roundingMs, engine, what } = this.#deployment;
    const events = readHistory(files.map((file) => join(this.#directory, file)));
    const report = checkHistory(events, { passesOnWithinMs: 3 * ttlMs + roundingMs + 4_000, complete: true });
    const trouble = troubleFile(this.#directory);
    if (existsSync(trouble)) this.#complaints.push(readFileSync(trouble, "utf8").trim());
    const excused: Record<string, number> = {};
    for (const { excuse = "" } of report.excused) excused[excuse] = (excused[excuse] ?? 0) + 1;
    const { seed, minutes } = this.#options;
    const { requests, grants, writes } = report;
    return {
      engine,
      deployment: what,
      seed,
      minutes,
      faults: this.#mischief.counts,
      requests,
      grants,
      writes,
      violations: countByPromise(report.violations),
      excused,
      complaints: this.#complaints,
      pictures: report.violations.slice(0, MOST_PICTURES).map(report.draw),
    };
  }

  #line(endMs: number): string {
    const left = Math.max(0, Math.round((endMs - performance.now()) / 1000));
    const done = Object.values(this.#mischief.counts).reduce((sum, each) => sum + each, 0);
    return `${left} s of faults left; ${done} faults, ${this.#applied.length} fenced writes; now: ${this.#mischief.now}`;
  }
}
