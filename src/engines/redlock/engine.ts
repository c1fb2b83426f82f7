/**
 * Locks that a quorum of independent Redis servers agree on. There is no queue: requests of one process wait in line,
 * processes contend. See docs/engines/redlock.md.
 */
import { type Alarm, Alarms } from "../../engine/alarms.ts";
import type { Clock } from "../../engine/clock.ts";
import { Departures } from "../../engine/departures.ts";
import type { Engine, Grant, Queue, RequestSpec, Traits } from "../../engine/engine.ts";
import { ClosedError, ConfigError, EngineUnavailableError } from "../../engine/errors.ts";
import { pendingTtlMs } from "../../engine/lease.ts";
import { newOwner } from "../../engine/name.ts";
import { InFlight } from "../../redis/in-flight.ts";
import { Admission } from "./admission.ts";
import type { Electorate } from "./ballot.ts";
import { Bells } from "./bells.ts";
import { ClockGuard } from "./clock-guard.ts";
import { Contest, type ContestGround } from "./contest.ts";
import type { RedlockGrant } from "./grant.ts";
import { evict, inspect, names } from "./inspection.ts";
import { Line, type Place } from "./line.ts";
import { RedlockNode, type Server } from "./node.ts";
import { Proposals } from "./proposals.ts";
import { Renewals } from "./renewals.ts";
import { quarantineMs, type Terms } from "./terms.ts";

export const REDLOCK_TRAITS: Traits = {
  engine: "redlock",
  fair: false,
  shared: false,
  limits: false,
  steal: false,
  minHold: false,
  lease: "lease",
  bells: "push",
  scope: "network",
  survivesRestart: true,
  survivesFailover: true,
  // The clock guard narrows the hole, it does not close it.
  survivesClockJump: false,
};

/** How long `close` waits for what is being released; afterwards leases end the rest. */
const CLOSE_PATIENCE_MS = 2_000;
/** How often the clock of an idle node is read. */
const WATCH_MS = 1_000;
/** Once a quorum is connected, how long `open` waits for the others. */
const STRAGGLER_MS = 200;

export class RedlockEngine implements Engine {
  readonly traits: Traits = REDLOCK_TRAITS;
  readonly clock: Clock;
  readonly #terms: Terms;
  readonly #servers: () => Promise<readonly Server[]>;
  readonly #alarms: Alarms;
  readonly #departures: Departures;
  readonly #guard: ClockGuard;
  readonly #inFlight: InFlight;
  readonly #bell: string;
  readonly #lines = new Map<string, Line>();
  readonly #grants = new Map<string, Set<RedlockGrant>>();
  readonly #closing = new AbortController();
  readonly #waiting = new Set<Promise<unknown>>();
  readonly #onChange = new Set<() => void>();
  #releases: readonly (() => void)[] = [];
  #nodes: readonly RedlockNode[] = [];
  #admission: Admission | undefined;
  #bells: Bells | undefined;
  #ground: ContestGround | undefined;
  #watch: Alarm | undefined;
  #ballotMs = 1;
  #closed: Promise<void> | undefined;

  /** `servers` is called once, by `open`. */
  constructor(terms: Terms, clock: Clock, servers: () => Promise<readonly Server[]>) {
    this.#terms = terms;
    this.clock = clock;
    this.#servers = servers;
    this.#alarms = new Alarms(clock);
    this.#departures = new Departures(clock, this.#alarms);
    this.#guard = new ClockGuard({ maxSkewMs: terms.maxClockSkewMs, quarantineMs: quarantineMs(terms) });
    this.#inFlight = new InFlight(clock);
    this.#bell = newOwner(clock).slice(0, 12);
  }

  async open(): Promise<void> {
    const servers = await this.#servers();
    this.#releases = servers.map(({ release }) => release);
    const ground = { terms: this.#terms, clock: this.clock, guard: this.#guard, inFlight: this.#inFlight };
    this.#nodes = servers.map(
      (server, index) => new RedlockNode(index, server, ground, { changed: () => this.#nodeChanged() }),
    );
    this.#admission = new Admission({
      nodes: this.#nodes,
      terms: this.#terms,
      clock: this.clock,
      alarms: this.#alarms,
    });
    this.#bells = new Bells(this.#bell, this.#nodes, this.clock, {
      free: (name, node, rung) => this.#lines.get(name)?.rung(node, rung),
      evicted: (name) => this.#grants.get(name)?.forEach((grant) => void grant.renew().catch(() => {})),
      missed: () => this.#lines.forEach((line) => line.check()),
    });
    this.#ground = this.#makeGround();
    // No socket of ours keeps the process alive, and there is no lock manager yet that would.
    const alive = this.clock.stayAlive();
    try {
      await this.#connect();
      await this.#admission.check();
    } catch (error) {
      await this.close();
      throw error;
    } finally {
      alive.cancel();
    }
    this.#watchClocks();
  }

  async request(spec: RequestSpec, signal?: AbortSignal): Promise<Grant | null> {
    const ground = this.#openGround();
    if (spec.ttlMs > this.#terms.maxTtlMs) {
      throw new ConfigError(
        `ttlMs (${spec.ttlMs}) is over maxTtlMs (${this.#terms.maxTtlMs}), the longest lease of this redlock deployment`,
      );
    }
    signal?.throwIfAborted();
    const line = this.#lines.get(spec.name);
    // A request that does not wait does not overtake those that do.
    if (!spec.wait && line !== undefined) return null;
    const stop = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    if (!spec.wait) return await new Contest(ground, spec, stop).once();
    const waiting = this.#wait(ground, spec, stop, line ?? this.#newLine(spec));
    this.#waiting.add(waiting);
    try {
      return await waiting;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  async #wait(ground: ContestGround, spec: RequestSpec, signal: AbortSignal, line: Line): Promise<Grant> {
    const place: Place = {
      sinceMs: this.clock.wallMs(),
      pendingTtlMs: pendingTtlMs(spec.ttlMs, spec.graceMs),
      value: spec.value,
      onTurn: undefined,
    };
    const first = line.places.length === 0;
    line.join(place);
    try {
      return await new Contest(ground, spec, signal).wait(line, place, first);
    } finally {
      line.leave(place);
    }
  }

  inspect(name: string): Promise<Queue> {
    return inspect(this.#openGround().electorate, name);
  }

  names(prefix = ""): AsyncIterable<string> {
    return names(this.#openGround().electorate, prefix);
  }

  evict(name: string, token: bigint): Promise<boolean> {
    return evict(this.#openGround().electorate, name, token);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing.abort(new ClosedError());
    this.#admission?.close();
    await this.#endOfWaiting();
    await this.#departures.finish(CLOSE_PATIENCE_MS);
    this.#watch?.cancel();
    this.#alarms.clear();
    this.#bells?.close();
    await Promise.all(this.#nodes.map((node) => node.close()));
    this.#inFlight.clear();
    for (const release of this.#releases) release();
  }

  /** What was abandoned just now ends within the next turns, and only then begins to leave the nodes. */
  async #endOfWaiting(): Promise<void> {
    await new Promise<void>((resolve) => {
      const alarm = this.#alarms.set(this.clock.monotonicMs() + CLOSE_PATIENCE_MS, resolve);
      void Promise.allSettled(this.#waiting).then(() => {
        alarm.cancel();
        resolve();
      });
    });
  }

  /** Connects to all; enough is a quorum, after giving the others a moment. */
  async #connect(): Promise<void> {
    const failures: string[] = [];
    let connected = 0;
    await new Promise<void>((resolve, reject) => {
      let open = this.#nodes.length;
      for (const node of this.#nodes) {
        node.open().then(
          () => {
            if (++connected === this.#terms.quorum) this.clock.after(STRAGGLER_MS, resolve);
            if (--open === 0) resolve();
          },
          (error: unknown) => {
            if (error instanceof ConfigError) reject(error);
            failures.push(`${node.label}: ${node.lastError}`);
            if (--open === 0) resolve();
          },
        );
      }
    });
    this.#checkNodes();
    if (connected >= this.#terms.quorum) return;
    const { nodes } = this.#terms;
    throw new EngineUnavailableError(`${connected} of ${nodes} nodes can be reached (${failures.join("; ")})`);
  }

  #makeGround(): ContestGround {
    const electorate: Electorate = {
      nodes: this.#nodes,
      terms: this.#terms,
      clock: this.clock,
      trusts: (node) => !this.#terms.clockGuard || this.#guard.inStep(node.index, this.clock.monotonicMs()),
    };
    return {
      electorate,
      departures: this.#departures,
      renewals: new Renewals(electorate),
      bell: this.#bell,
      proposals: new Proposals(this.clock),
      add: (grant) => this.#addGrant(grant),
      forget: (grant) => this.#forgetGrant(grant),
      ballotMs: () => this.#ballotMs,
      openBells: () => this.#bells?.open() ?? Promise.resolve(),
      nodesChanged: (ms) => this.#nodesChanged(ms),
      outage: (why) => this.#outage(why),
      checkNodes: () => this.#checkNodes(),
    };
  }

  #openGround(): ContestGround {
    if (this.#closed !== undefined) throw new ClosedError();
    if (this.#ground === undefined) throw new Error("the engine is not open");
    return this.#ground;
  }

  #newLine({ name, client }: RequestSpec): Line {
    const { electorate } = this.#openGround();
    const forget = (line: Line): void => {
      if (this.#lines.get(name) === line) this.#lines.delete(name);
    };
    const line = new Line(
      { electorate, alarms: this.#alarms, departures: this.#departures, bell: this.#bell, forget },
      name,
      client,
    );
    this.#lines.set(name, line);
    return line;
  }

  #addGrant(grant: RedlockGrant): void {
    const tookMs = this.clock.monotonicMs() - grant.lease().from.monoMs;
    this.#ballotMs += (tookMs - this.#ballotMs) / 8;
    const grants = this.#grants.get(grant.name);
    if (grants === undefined) this.#grants.set(grant.name, new Set([grant]));
    else grants.add(grant);
  }

  #forgetGrant(grant: RedlockGrant): void {
    const grants = this.#grants.get(grant.name);
    grants?.delete(grant);
    if (grants?.size === 0) this.#grants.delete(grant.name);
  }

  /** Servers that are set up wrongly, or the same one twice: no waiting helps. */
  #checkNodes(): void {
    const problem = this.#nodes.find((node) => node.problem !== undefined)?.problem;
    if (problem !== undefined) throw problem;
    const byRun = new Map<string, RedlockNode>();
    for (const node of this.#nodes) {
      if (node.incarnation === undefined) continue;
      const { run } = node.incarnation;
      const twin = byRun.get(run);
      if (twin !== undefined) throw new ConfigError(`${twin.label} and ${node.label} are the same server`);
      byRun.set(run, node);
    }
  }

  #outage(why: string): { message: string; passes: boolean } {
    const { quorum, nodes } = this.#terms;
    const here = this.#nodes.filter((node) => node.incarnation !== undefined);
    const voting = here.filter((node) => node.admitted);
    const now = this.clock.monotonicMs();
    if (voting.length < quorum && here.length >= quorum) {
      const stuck = this.#admission?.stuck;
      if (stuck !== undefined) return { message: stuck, passes: false };
      const leftMs = Math.max(0, (this.#admission?.readyAtMs ?? now) - now);
      const what = `${voting.length} of ${nodes} nodes have a vote, ${quorum} are needed`;
      return {
        message: `${what}; the others were restarted, or are new, and vote in ${Math.ceil(leftMs / 1_000)} s`,
        passes: true,
      };
    }
    const clocks = here
      .filter((node) => this.#terms.clockGuard && !this.#guard.inStep(node.index, now))
      .map((node) => {
        const votesIn = Math.ceil(this.#guard.quarantineLeftMs(node.index, now) / 1_000);
        return `${node.label} is ${Math.round(this.#guard.skewMs(node.index))} ms off the others, votes in ${votesIn} s`;
      });
    const details = [why, ...clocks].filter((each) => each !== "").join("; ");
    return { message: `no quorum: ${quorum} of ${nodes} nodes are needed (${details})`, passes: false };
  }

  #nodeChanged(): void {
    if (this.#closed !== undefined) return;
    void this.#admission?.check();
    for (const changed of this.#onChange) changed();
  }

  #nodesChanged(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const changed = (): void => {
        alarm.cancel();
        this.#onChange.delete(changed);
        resolve();
      };
      const alarm = this.#alarms.set(this.clock.monotonicMs() + ms, changed);
      this.#onChange.add(changed);
    });
  }

  /** Reads the clocks of nodes that have said nothing for a while, and looks after those that have no vote. */
  #watchClocks(): void {
    if (this.#closed !== undefined) return;
    const now = this.clock.monotonicMs();
    for (const node of this.#nodes) {
      if (this.#terms.clockGuard && now - node.heardAtMs >= WATCH_MS / 2) node.look().catch(() => {});
    }
    if (this.#nodes.some((node) => node.incarnation !== undefined && !node.admitted)) void this.#admission?.check();
    this.#watch = this.#alarms.set(now + WATCH_MS, () => this.#watchClocks());
  }
}
