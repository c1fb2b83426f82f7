/** Many runs of `holdfast run counter` that add one to a number in a file, undisturbed or while holders are killed. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pause, start, type Running } from "./command-line.ts";

const SCRIPT = join(import.meta.dirname, "increment.sh");

export interface Counting {
  /** An empty directory. */
  readonly directory: string;
  /** The compiled or uncompiled main program. */
  readonly main: string;
  /** Runs side by side. */
  readonly workers: number;
  /** Runs of each, one after the other. */
  readonly times: number;
  /** Kills holders in the middle of their work when given. */
  readonly random?: SeededRandom;
}

/** The same numbers for the same seed (xorshift32). */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1;
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % limit;
  }
}

export interface Counted {
  readonly number: number;
  readonly kills: Readonly<Record<Victim, number>>;
  /** From each kill to the next holder's beginning, in ms. */
  readonly handOffs: readonly HandOff[];
}

type Victim = "nobody" | "command" | "supervisor" | "both";
/** From a kill until the next COMMAND has begun. */
interface HandOff {
  readonly victim: Victim;
  readonly ms: number;
}

const VICTIMS: readonly Victim[] = ["nobody", "command", "supervisor", "both"];
const WORK_SECONDS = "0.03";
const LONGEST_DELAY_MS = 40;

/** Runs it all and checks what must hold in any case: nothing lost, nothing twice, nobody beside another, growing tokens. */
export async function count(counting: Counting): Promise<Counted> {
  const { directory, workers } = counting;
  writeFileSync(join(directory, "count"), "0\n");
  const tally = new Tally();
  await Promise.all(Array.from({ length: workers }, () => work(counting, tally)));
  const [first = "", ...lines] = readFileSync(join(directory, "count"), "utf8").trim().split("\n");
  const written = lines.map(BigInt);
  assert.equal(Number(first), written.length, "the number is not that of the increments");
  assert.deepEqual(written, written.toSorted(ascending), "tokens do not grow");
  assert.equal(new Set(written).size, written.length, "a token came twice");
  const inFile = new Set(written);
  for (const token of tally.done) assert(inFile.has(token), `the increment under token ${token} was lost`);
  const begun = new Set(tally.begun);
  for (const token of written) assert(begun.has(token), `nobody began with token ${token}`);
  const overlaps = join(directory, "overlaps");
  assert(!existsSync(overlaps), `ran beside another: ${existsSync(overlaps) ? readFileSync(overlaps, "utf8") : ""}`);
  return { number: Number(first), kills: tally.kills, handOffs: tally.handOffs };
}

function ascending(left: bigint, right: bigint): number {
  return left < right ? -1 : 1;
}

class Tally {
  readonly begun: bigint[] = [];
  readonly done: bigint[] = [];
  readonly kills: Record<Victim, number> = { nobody: 0, command: 0, supervisor: 0, both: 0 };
  readonly handOffs: HandOff[] = [];
  #killed: { readonly victim: Victim; readonly atMs: number; readonly token: bigint } | undefined;

  began(token: bigint): void {
    if (this.#killed !== undefined) {
      this.handOffs.push({ victim: this.#killed.victim, ms: performance.now() - this.#killed.atMs });
      assert(token > this.#killed.token, `token ${token} after a killed holder with ${this.#killed.token}`);
    }
    this.#killed = undefined;
    this.begun.push(token);
  }

  killed(victim: Victim, token: bigint): void {
    this.kills[victim]++;
    if (victim !== "nobody") this.#killed = { victim, atMs: performance.now(), token };
  }
}

async function work({ directory, main, times, random }: Counting, tally: Tally): Promise<void> {
  const url = `sqlite:${join(directory, "locks.db")}`;
  for (let round = 0; round < times; round++) {
    const words = [main, "run", "counter", "--", "/bin/sh", SCRIPT, directory, WORK_SECONDS];
    const run = start(process.execPath, words, { env: { HOLDFAST_URL: url } });
    const victim = random === undefined ? "nobody" : (VICTIMS[random.below(VICTIMS.length)] ?? "nobody");
    const [, pid, token] = await run.shows(/^begins (\d+) (\d+)\n/, "stdout", 300_000);
    tally.began(BigInt(token ?? 0));
    if (random !== undefined) {
      await pause(random.below(LONGEST_DELAY_MS));
      kill(run, Number(pid), victim);
      tally.killed(victim, BigInt(token ?? 0));
    }
    const { code, signal, stdout, stderr } = await run.finished;
    assert.equal(stderr, "");
    if (victim === "nobody") assert.deepEqual([code, signal], [0, null]);
    const done = /^done (\d+)$/m.exec(stdout)?.[1];
    if (done !== undefined) tally.done.push(BigInt(done));
  }
}

function kill(run: Running, command: number, victim: Victim): void {
  if (victim === "supervisor" || victim === "both") run.child.kill("SIGKILL");
  if (victim !== "command" && victim !== "both") return;
  try {
    process.kill(command, "SIGKILL");
  } catch {
    // It has just ended by itself.
  }
}
