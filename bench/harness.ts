/**
 * The measuring harness: contenders take turns in one process, several rounds, so that noise of the machine falls on all
 * alike; medians and ratios come out. Never a timed test.
 */
import { cpus, totalmem } from "node:os";

/** One thing to measure. */
export interface Contender {
  readonly name: string;
  /** "limit" is what the others are divided by; floors are set for "ours". */
  readonly kind: "limit" | "ours" | "peer";
  /** Connects and warms up; called once. `between` rounds nothing of it may run. */
  start(): Promise<Running>;
}

export interface Running {
  /** Works for about `ms` and returns how many operations were done. Throws when two held at once. */
  run(ms: number): Promise<number>;
  /** What else is worth telling of all rounds together, for people. */
  notes?(): readonly string[];
  stop(): Promise<void>;
}

/** "ours at least `atLeast` times `than`": `than` is a contender's name, or "limit", or "best peer". */
export interface Floor {
  readonly than: string;
  readonly atLeast: number;
}

export interface Work {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly contenders: readonly Contender[];
  readonly floors: readonly Floor[];
}

export interface ContenderResult {
  readonly name: string;
  readonly kind: Contender["kind"];
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  readonly notes?: readonly string[];
  /** The reason when it could not run. */
  readonly missing?: string;
}

export interface FloorResult extends Floor {
  readonly ours: string;
  readonly ratio: number;
  readonly reached: boolean;
}

export interface WorkResult {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly rounds: number;
  readonly roundMs: number;
  readonly contenders: readonly ContenderResult[];
  readonly floors: readonly FloorResult[];
}

export interface Effort {
  readonly rounds: number;
  readonly roundMs: number;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** Runs one work. A contender that cannot start is reported with its reason; it never passes silently. */
export async function measure(work: Work, effort: Effort, progress: (text: string) => void): Promise<WorkResult> {
  const started: { contender: Contender; running: Running; rates: number[] }[] = [];
  const missing: ContenderResult[] = [];
  for (const contender of work.contenders) {
    const { name, kind } = contender;
    try {
      started.push({ contender, running: await contender.start(), rates: [] });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      missing.push({ name, kind, median: 0, lowest: 0, highest: 0, missing: reason });
    }
  }
  const notes = new Map<string, readonly string[]>();
  try {
    for (let round = -1; round < effort.rounds; round++) {
      progress(`${work.id}: ${round < 0 ? "warming up" : `round ${round + 1} of ${effort.rounds}`}`);
      // Another order each round: nobody always runs in the wake of the same neighbour.
      for (let turn = 0; turn < started.length; turn++) {
        const one = started[(turn + round + 1) % started.length];
        if (one === undefined) continue;
        const from = performance.now();
        const operations = await one.running.run(effort.roundMs);
        if (round >= 0) one.rates.push((operations / (performance.now() - from)) * 1000);
      }
    }
    for (const { contender, running } of started) notes.set(contender.name, running.notes?.() ?? []);
  } finally {
    for (const one of started) await one.running.stop();
  }
  const results = started.map(({ contender, rates }) => ({
    name: contender.name,
    kind: contender.kind,
    median: median(rates),
    lowest: Math.min(...rates),
    highest: Math.max(...rates),
    notes: notes.get(contender.name) ?? [],
  }));
  const all = [...results, ...missing];
  const { id, title, unit } = work;
  return { id, title, unit, ...effort, contenders: all, floors: floorsOf(work, results) };
}

function floorsOf(work: Work, results: readonly ContenderResult[]): FloorResult[] {
  const ours = results.filter((each) => each.kind === "ours");
  return work.floors.flatMap((floor) => {
    const base = baseOf(floor, results);
    return ours.map((each) => {
      const ratio = base === undefined || base.median === 0 ? 0 : each.median / base.median;
      return { ...floor, ours: each.name, ratio, reached: ratio >= floor.atLeast };
    });
  });
}

function baseOf(floor: Floor, results: readonly ContenderResult[]): ContenderResult | undefined {
  if (floor.than === "limit") return results.find((each) => each.kind === "limit");
  if (floor.than !== "best peer") return results.find((each) => each.name === floor.than);
  const peers = results.filter((each) => each.kind === "peer");
  return peers.toSorted((left, right) => right.median - left.median)[0];
}

/** A contender's loop, `workers` side by side until the time is up. `pair` does one operation. */
export async function loop(ms: number, workers: number, pair: (worker: number) => Promise<void>): Promise<number> {
  const until = performance.now() + ms;
  let operations = 0;
  const work = async (worker: number): Promise<void> => {
    while (performance.now() < until) {
      await pair(worker);
      operations++;
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
  return operations;
}

/** What a run has to name to be repeated. */
export function machine(): Record<string, string> {
  return {
    node: process.version,
    cpu: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    platform: `${process.platform} ${process.arch}`,
  };
}
