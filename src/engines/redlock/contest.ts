/** How one request gets its lock: ballot after ballot, waiting for bells in between, with growing random pauses. */
import { Backoff } from "../../engine/backoff.ts";
import { instant, sleep } from "../../engine/clock.ts";
import type { RequestSpec } from "../../engine/engine.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import { pendingTtlMs, remainingMs } from "../../engine/lease.ts";
import { newOwner } from "../../engine/name.ts";
import { Ballot, type BallotResult } from "./ballot.ts";
import { leaveNodes, RedlockGrant, type GrantGround } from "./grant.ts";
import type { Line, Place } from "./line.ts";
import type { Proposals } from "./proposals.ts";
import { nodeLeaseMs } from "./terms.ts";
import { Touched } from "./touched.ts";

export interface ContestGround extends GrantGround {
  readonly bell: string;
  readonly proposals: Proposals;
  add(grant: RedlockGrant): void;
  /** How long a ballot takes at present, ms. */
  ballotMs(): number;
  /** Listens for bells from now on. */
  openBells(): Promise<void>;
  /** Resolves when a node may have got its vote, or after `ms`. */
  nodesChanged(ms: number): Promise<void>;
  /** Why fewer than a quorum have a vote, and whether that passes by itself. */
  outage(why: string): { readonly message: string; readonly passes: boolean };
  /** Throws when a server is set up wrongly. */
  checkNodes(): void;
}

/** Without a quorum of answers: so many tries, with pauses in between. */
const SILENT_TRIES = 4;
const FIRST_SILENT_PAUSE_MS = 40;
/** A split vote is nobody's lock: one that does not wait tries again so often. */
const SPLIT_TRIES = 12;
const LONGEST_SPLIT_PAUSE_MS = 500;
/** Grants that took most of their lease to get are given back; after so many the nodes are too slow. */
const SLOW_TRIES = 3;

export class Contest {
  readonly #ground: ContestGround;
  readonly #spec: RequestSpec;
  readonly #signal: AbortSignal | undefined;
  readonly #client: string;
  readonly #leaseMs: number;
  #split: Backoff | undefined;
  #silent: Backoff | undefined;
  #silentTries = 0;
  #splitTries = 0;
  #slowTries = 0;
  /** When a quorum last answered while this request was waiting (monotonic). */
  #answeredAtMs: number | undefined;

  constructor(ground: ContestGround, spec: RequestSpec, signal: AbortSignal | undefined) {
    this.#ground = ground;
    this.#spec = spec;
    this.#signal = signal;
    const { clientId, host, pid } = spec.client;
    this.#client = JSON.stringify({ clientId, host, pid, value: spec.value });
    this.#leaseMs = nodeLeaseMs(spec.ttlMs, ground.electorate.terms);
  }

  /** One attempt, repeated only while nobody has the lock. */
  async once(): Promise<RedlockGrant | null> {
    for (;;) {
      const outcome = await this.#attempt(false);
      if (outcome instanceof RedlockGrant) return outcome;
      if (outcome.state === "silent") {
        await this.#afterSilence(outcome.why, false);
      } else {
        if (outcome.held || ++this.#splitTries >= SPLIT_TRIES) return null;
        await this.#pause(this.#splitPauseMs());
      }
    }
  }

  /** Contends at the head of `line` until granted. `first`: nobody of this process was ahead. */
  async wait(line: Line, place: Place, first: boolean): Promise<RedlockGrant> {
    if (!first) {
      await this.#turn(line, place);
      await this.#listen(line);
    }
    for (;;) {
      const outcome = await this.#attempt(true);
      if (outcome instanceof RedlockGrant) return outcome;
      if (outcome.state === "silent") {
        await this.#afterSilence(outcome.why, true);
        continue;
      }
      this.#answeredAtMs = this.#now();
      if (outcome.held) {
        this.#split = undefined;
        await this.#listen(line);
      } else {
        await this.#pause(this.#splitPauseMs());
      }
    }
  }

  /** Waits until this request is at the head of its line. */
  #turn(line: Line, place: Place): Promise<void> {
    if (line.places[0] === place) return Promise.resolve();
    return this.#orAborted(new Promise((resolve) => (place.onTurn = resolve)));
  }

  /** Waits until the lock may be free: for a bell, or until the leases in the way end, or for a keep-alive period. */
  async #listen(line: Line): Promise<void> {
    await this.#orAborted(this.#ground.openBells());
    const freeInMs = await this.#orAborted(line.listen());
    if (freeInMs > 0) {
      const { clock } = this.#ground.electorate;
      const keepAliveMs = (pendingTtlMs(this.#spec.ttlMs, this.#spec.graceMs) / 3) * (0.8 + 0.2 * clock.random());
      await this.#orAborted(line.nextBell(Math.min(freeInMs + 1, keepAliveMs)));
    }
    // All that are rung would come at once and split the votes: they spread over the time that so many ballots take.
    if (line.rungProcesses > 1) {
      const spreadMs = line.rungProcesses * Math.max(1, this.#ground.ballotMs());
      await this.#pause(Math.min(spreadMs, LONGEST_SPLIT_PAUSE_MS) * this.#ground.electorate.clock.random());
    }
  }

  async #attempt(retries: boolean): Promise<RedlockGrant | Exclude<BallotResult, { state: "won" }>> {
    const { electorate, proposals, bell } = this.#ground;
    const { name, ttlMs } = this.#spec;
    // A new owner for each ballot: a release of the former one that arrives late must not take this one's votes.
    const owner = `${bell}.${newOwner(electorate.clock)}`;
    const touched = new Touched();
    const proposal = proposals.next(name);
    const wish = { name, owner, leaseMs: this.#leaseMs, proposal, client: this.#client, touched };
    const startedAtMs = this.#now();
    const ballot = Ballot.hold(electorate, wish);
    const leave = (ring: boolean): Promise<void> =>
      leaveNodes(electorate, this.#ground.departures, {
        name,
        owner,
        touched,
        untilMs: startedAtMs + this.#leaseMs,
        ring,
      });
    let result: BallotResult;
    try {
      result = await this.#orAborted(ballot);
    } catch (error) {
      // A departure, so that closing waits for it: what the nodes vote in the meantime is to be taken back.
      const leaveAfterwards = (): Promise<void> => ballot.then(() => leave(true));
      void this.#ground.departures.depart(leaveAfterwards, startedAtMs + this.#leaseMs);
      throw error;
    }
    if (result.state !== "won") {
      proposals.heard(name, result.highest);
      // One that tries again rings nobody: it would only call up the others it is competing with.
      void leave(!retries);
      return result;
    }
    proposals.heard(name, result.token);
    const lease = { from: result.from, ttlMs };
    const won = {
      name,
      owner,
      client: this.#client,
      ttlMs,
      leaseMs: this.#leaseMs,
      lease,
      touched,
      voters: result.voters,
    };
    const grant = new RedlockGrant(this.#ground, { ...won, token: BigInt(result.token) });
    if (remainingMs(lease, instant(electorate.clock)) >= this.#spec.graceMs + ttlMs / 3) {
      this.#ground.add(grant);
      return grant;
    }
    await grant.release();
    if (++this.#slowTries >= SLOW_TRIES) {
      throw new EngineUnavailableError(`a quorum of the nodes answers too slowly for a ttlMs of ${ttlMs}`);
    }
    return { state: "busy", freeInMs: 0, held: false, highest: result.token };
  }

  /** Pauses before the next try, or throws when there is no point in one. */
  async #afterSilence(why: string, waits: boolean): Promise<void> {
    this.#ground.checkNodes();
    const { message, passes } = this.#ground.outage(why);
    if (passes) {
      if (!waits) throw new EngineUnavailableError(message);
      await this.#orAborted(this.#ground.nodesChanged(1_000));
      return;
    }
    const patienceMs = pendingTtlMs(this.#spec.ttlMs, this.#spec.graceMs);
    const known = this.#answeredAtMs !== undefined && this.#now() - this.#answeredAtMs < patienceMs;
    if (!known && ++this.#silentTries >= SILENT_TRIES) throw new EngineUnavailableError(message);
    this.#silent ??= new Backoff(this.#ground.electorate.clock, FIRST_SILENT_PAUSE_MS, 1_000);
    await this.#pause(this.#silent.next());
  }

  #splitPauseMs(): number {
    const firstMs = 2 * Math.max(1, this.#ground.ballotMs());
    this.#split ??= new Backoff(this.#ground.electorate.clock, firstMs, LONGEST_SPLIT_PAUSE_MS);
    return this.#split.next();
  }

  #pause(ms: number): Promise<void> {
    return sleep(this.#ground.electorate.clock, ms, this.#signal);
  }

  /** Passes `work` on, or rejects with the signal's reason as soon as it aborts. */
  #orAborted<T>(work: Promise<T>): Promise<T> {
    const signal = this.#signal;
    if (signal === undefined) return work;
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const onAbort = (): void => reject(signal.reason);
      signal.addEventListener("abort", onAbort);
      work.then(
        (result) => {
          signal.removeEventListener("abort", onAbort);
          resolve(result);
        },
        (error: unknown) => {
          signal.removeEventListener("abort", onAbort);
          reject(error);
        },
      );
    });
  }

  #now(): number {
    return this.#ground.electorate.clock.monotonicMs();
  }
}
