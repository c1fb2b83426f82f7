/** Carries out what the restart guard decides: waits, writes waits down for others, reads counters, admits. */
import { createHash } from "node:crypto";
import type { Alarm, Alarms } from "../../engine/alarms.ts";
import type { Clock } from "../../engine/clock.ts";
import type { RedlockNode } from "./node.ts";
import { nextStep, type NodeView, type Step } from "./restart-guard.ts";
import { ADMIT, NODE_KEY, NOTE, noteKeys } from "./scripts.ts";
import { quarantineMs, type Terms } from "./terms.ts";

/** How long it stays written down that a wait was begun. */
const MARK_MS = 24 * 3_600_000;
/** After a pass that failed half-way. */
const RETRY_MS = 500;
const EMPTY = { run: "", maxTtlMs: 0, nodes: 0, high: 0 };

export interface AdmissionGround {
  readonly nodes: readonly RedlockNode[];
  readonly terms: Terms;
  readonly clock: Clock;
  readonly alarms: Alarms;
}

export class Admission {
  readonly #ground: AdmissionGround;
  readonly #warned = new Set<string>();
  #alarm: Alarm | undefined;
  #pass: Promise<void> | undefined;
  #again = false;
  #stuck: string | undefined;
  #readyAtMs: number | undefined;
  #closed = false;

  constructor(ground: AdmissionGround) {
    this.#ground = ground;
  }

  /** Why nodes have no vote although they are there; undefined when all have. */
  get stuck(): string | undefined {
    return this.#stuck;
  }

  /** When the next node is expected to get its vote (monotonic). */
  get readyAtMs(): number | undefined {
    return this.#readyAtMs;
  }

  /** Looks at all nodes as they are from now on, and does what can be done at once. Never rejects. */
  check(): Promise<void> {
    if (this.#closed || !this.#ground.terms.restartGuard) return Promise.resolve();
    this.#again = this.#pass !== undefined;
    this.#pass ??= this.#passes().finally(() => (this.#pass = undefined));
    return this.#pass;
  }

  /** One pass at a time; one more when somebody asked meanwhile. */
  async #passes(): Promise<void> {
    do {
      this.#again = false;
      this.#alarm?.cancel();
      this.#alarm = undefined;
      await this.#run();
    } while (this.#again && !this.#closed);
  }

  close(): void {
    this.#closed = true;
    this.#alarm?.cancel();
  }

  async #run(): Promise<void> {
    try {
      // Each step changes what the next one sees.
      for (let step = await this.#look(); await this.#take(step);) step = await this.#look();
    } catch {
      // A node went away meanwhile.
      this.#checkAt(this.#now() + RETRY_MS);
    }
  }

  async #look(): Promise<Step> {
    const { nodes, terms } = this.#ground;
    if (nodes.every((node) => node.incarnation === undefined || node.admitted)) {
      this.#stuck = undefined;
      this.#readyAtMs = undefined;
      return { kind: "none" };
    }
    await Promise.all(nodes.map((node) => node.refresh().catch(() => {})));
    return nextStep(nodes.map(viewOf), terms);
  }

  /** True when something was done, and it is worth looking again. */
  async #take(step: Step): Promise<boolean> {
    if (this.#closed) return false;
    this.#stuck = step.kind === "stuck" ? step.why : undefined;
    this.#readyAtMs = undefined;
    switch (step.kind) {
      case "none":
      case "stuck":
        return false;
      case "admit-durable":
        await Promise.all(this.#nodes(step.nodes).map((node) => this.#admit(node, node.run, 0)));
        return true;
      case "readmit":
        return await this.#readmit(this.#nodes(step.nodes), this.#nodes(step.sources));
      case "bootstrap":
        return await this.#bootstrap(this.#nodes(step.nodes), step.waitMs);
      default:
        return step satisfies never;
    }
  }

  async #readmit(foreign: readonly RedlockNode[], sources: readonly RedlockNode[]): Promise<boolean> {
    const { quorum } = this.#ground.terms;
    let done = false;
    for (const node of foreign) {
      const { incarnation } = node;
      if (incarnation === undefined) continue;
      const { run } = incarnation;
      const leftMs = await this.#leftMs(run, incarnation.seenAtMs, sources, quorum);
      if (leftMs > 0) {
        this.#warn(run, `${node.label} was restarted; it votes again in ${seconds(leftMs)}`);
        this.#checkAt(this.#now() + leftMs);
        continue;
      }
      // Only now: what was granted with the former incarnation's vote stands on the others by now.
      const floor = await this.#highestOf(sources, quorum, (source) => source.admitted);
      if (floor === undefined) {
        this.#checkAt(this.#now() + RETRY_MS);
        continue;
      }
      await this.#forgetNotes(run, sources);
      await this.#admit(node, run, floor);
      done = true;
    }
    return done;
  }

  async #bootstrap(foreign: readonly RedlockNode[], waitMs: number): Promise<boolean> {
    const { nodes } = this.#ground;
    const runs = nodes.map(({ run }) => run);
    const subject = createHash("sha256")
      .update([...runs].sort().join())
      .digest("hex")
      .slice(0, 40);
    if (waitMs > 0) {
      const seenAtMs = Math.max(...nodes.map((node) => node.incarnation?.seenAtMs ?? this.#now()));
      const leftMs = await this.#leftMs(subject, seenAtMs, nodes, nodes.length);
      if (leftMs > 0) {
        const what = `these ${nodes.length} nodes are new, or have all lost their data: they vote in ${seconds(leftMs)}`;
        this.#warn(subject, `${what}; bootstrap: true skips this wait where nobody can hold a lock`);
        this.#checkAt(this.#now() + leftMs);
        return false;
      }
    }
    const floor = await this.#highestOf(nodes, nodes.length, () => true);
    if (floor === undefined) {
      this.#checkAt(this.#now() + RETRY_MS);
      return false;
    }
    await this.#forgetNotes(subject, nodes);
    await Promise.all(foreign.map((node) => this.#admit(node, runs[node.index] ?? "", floor)));
    return true;
  }

  /**
   * What is left of the wait: by our own clock since we saw it begin, or by what a quorum has written down, for programs
   * that live shorter than the wait.
   */
  async #leftMs(subject: string, seenAtMs: number, keepers: readonly RedlockNode[], needed: number): Promise<number> {
    const waitMs = quarantineMs(this.#ground.terms);
    const ownMs = seenAtMs + waitMs - this.#now();
    if (ownMs <= 0) return 0;
    const args = [String(waitMs), String(MARK_MS)];
    const noted = await Promise.all(
      keepers.map((node) =>
        node.eval(NOTE, noteKeys(subject), args).then(
          (reply) => Number(reply[3]),
          () => Infinity,
        ),
      ),
    );
    const quorumMs = noted.sort((left, right) => left - right)[needed - 1] ?? Infinity;
    return Math.min(ownMs, quorumMs);
  }

  /** The highest counter that `needed` nodes have given for any name; undefined when too few that count answer. */
  async #highestOf(
    sources: readonly RedlockNode[],
    needed: number,
    counts: (node: RedlockNode) => boolean,
  ): Promise<number | undefined> {
    const highs = await Promise.all(
      sources.map((node) =>
        node.refresh().then(
          ({ record }) => (counts(node) ? record.high : undefined),
          () => undefined,
        ),
      ),
    );
    const known = highs.filter((high) => high !== undefined);
    return known.length >= needed ? Math.max(...known) : undefined;
  }

  async #admit(node: RedlockNode, run: string, floor: number): Promise<void> {
    const { terms } = this.#ground;
    // It may be another incarnation by now, whose wait has just begun.
    if (node.run !== run) throw new Error(`${node.label} was restarted`);
    await node.eval(ADMIT, [NODE_KEY], [run, String(terms.maxTtlMs), String(terms.nodes), String(floor)]);
    node.markAdmitted(run);
  }

  /** A note that outlived the admission would spare the node its wait if it were wiped while running. */
  async #forgetNotes(subject: string, keepers: readonly RedlockNode[]): Promise<void> {
    const keys = noteKeys(subject);
    await Promise.all(
      keepers.map((node) => node.command(["del", ...keys.map((key) => node.source.written(key))]).catch(() => {})),
    );
  }

  #nodes(indices: readonly number[]): RedlockNode[] {
    return this.#ground.nodes.filter(({ index }) => indices.includes(index));
  }

  #checkAt(atMs: number): void {
    if (this.#closed) return;
    if (this.#readyAtMs === undefined || atMs < this.#readyAtMs) this.#readyAtMs = atMs;
    this.#alarm?.cancel();
    this.#alarm = this.#ground.alarms.set(this.#readyAtMs, () => void this.check());
  }

  #warn(subject: string, text: string): void {
    if (this.#warned.has(subject) || this.#warned.size >= 1_000) return;
    this.#warned.add(subject);
    process.emitWarning(`redlock: ${text}`, { code: "HOLDFAST_REDLOCK_RESTART" });
  }

  #now(): number {
    return this.#ground.clock.monotonicMs();
  }
}

function viewOf(node: RedlockNode): NodeView {
  const { incarnation } = node;
  return {
    connected: incarnation !== undefined,
    run: incarnation?.run ?? "",
    record: incarnation?.record ?? EMPTY,
    seenAtMs: incarnation?.seenAtMs ?? 0,
  };
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`;
}
