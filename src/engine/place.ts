/**
 * One request's life in a lease engine: asking, pending (kept alive, asking again when a lease ahead ends), held, ended.
 * The place is the `Grant` that the locks get.
 */
import type { Alarm, Alarms } from "./alarms.ts";
import { Backoff } from "./backoff.ts";
import { instant, type Clock, type Instant } from "./clock.ts";
import type { Departures } from "./departures.ts";
import type { Grant, Lease, RequestSpec } from "./engine.ts";
import { ClosedError, EngineUnavailableError, lossError, type LossReason } from "./errors.ts";
import { deadlineMs, laterLease, pendingTtlMs, remainingMs } from "./lease.ts";
import type { Answer, Ask, LeaseStore } from "./lease-store.ts";
import { newOwner } from "./name.ts";
import type { RenewalBatches } from "./renewal-batches.ts";

/** What a place needs of its engine. */
export interface Ground {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly renewals: RenewalBatches;
  readonly departures: Departures;
  enter(place: Place): void;
  leave(place: Place): void;
}

/** How the wait for a grant ended. "lapsed": the request left the queue while its owner lives, and has to queue again. */
export type Outcome = "held" | "busy" | "lapsed";

const ASK_TRIES = 3;
const FIRST_RETRY_MS = 20;
/** Renewals that fall into the same share of a TTL go out together. */
const GRID_SHARE = 300;
/** A grant whose lease is nearly over is renewed before it is handed on; after this many slow renewals we give up. */
const SLOW_RENEWALS = 3;

/** When to renew a lease: a third of its TTL after it began, rounded down to a grid so that renewals meet in batches. */
export function renewalDueMs(lease: Lease): number {
  const due = lease.from.monoMs + lease.ttlMs / 3;
  const grid = lease.ttlMs / GRID_SHARE;
  return Math.max(lease.from.monoMs, Math.floor(due / grid) * grid);
}

export class Place implements Grant {
  readonly ask: Ask;
  readonly #ground: Ground;
  readonly #graceMs: number;
  #backoff: Backoff | undefined;
  #state: "asking" | "pending" | "confirming" | "held" | "ended" = "asking";
  #token: bigint | undefined;
  #lease: Lease | undefined;
  /** A grant that a bell told of before the first reply. */
  #rung: bigint | undefined;
  /**
   * The life of the request as far as we can be sure of it, from the first command on, and whether it was ever in doubt.
   * Once in doubt, it may have run out and been added again by a repeated command: then a bell of its first life says
   * nothing about its second.
   */
  #sure: Lease | undefined;
  #doubted = false;
  /** The command that adds the request, settled either way. */
  #asked: Promise<unknown> = Promise.resolve();
  #alarm: Alarm | undefined;
  #renewing: Promise<void> | undefined;
  #checkAgain = false;
  #departure: Promise<void> | undefined;
  #lossListener: ((reason: LossReason) => void) | undefined;
  #loss: LossReason | undefined;
  #settle: ((outcome: Outcome) => void) | undefined;
  #fail: ((error: unknown) => void) | undefined;

  constructor(ground: Ground, spec: RequestSpec) {
    this.#ground = ground;
    this.#graceMs = spec.graceMs;
    this.ask = {
      name: spec.name,
      owner: newOwner(ground.clock),
      mode: spec.mode,
      limit: spec.limit,
      ttlMs: spec.ttlMs,
      pendingTtlMs: pendingTtlMs(spec.ttlMs, spec.graceMs),
      minHoldMs: spec.minHoldMs,
      wait: spec.wait,
      steal: spec.steal,
      client: spec.client,
      value: spec.value,
    };
  }

  get token(): bigint {
    return this.#token ?? 0n;
  }

  lease(): Lease {
    if (this.#lease === undefined) throw new Error("a place has no lease before the store has answered");
    return this.#lease;
  }

  /** Asks the store and waits for the outcome. Rejects with the signal's reason, or when the engine fails for good. */
  wait(signal: AbortSignal | undefined): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => this.abandon(signal?.reason);
      this.#settle = (outcome) => {
        signal?.removeEventListener("abort", onAbort);
        resolve(outcome);
      };
      this.#fail = (error) => {
        signal?.removeEventListener("abort", onAbort);
        reject(error);
      };
      // First of all: a store may be at work while we do the rest.
      this.#send(1);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#ground.enter(this);
    });
  }

  /** Ends a wait: the caller gets `error` at once, the request is withdrawn in the background. */
  abandon(error: unknown): void {
    if (this.#fail === undefined) return;
    const fail = this.#fail;
    void this.#withdraw();
    fail(error);
  }

  #send(tries: number): void {
    const from = instant(this.#ground.clock);
    this.#sure ??= { from, ttlMs: this.ask.pendingTtlMs };
    this.#asked = this.#ground.store.request(this.ask).then(
      (answer) => {
        this.#answered(answer, from, false);
        this.#checkIfRung();
      },
      (error: unknown) => this.#askFailed(error, tries),
    );
  }

  #askFailed(error: unknown, tries: number): void {
    if (this.#state === "ended") return;
    if (error instanceof EngineUnavailableError && tries < ASK_TRIES) {
      // Its reply may be what got lost; asking again under the same owner is harmless.
      this.#ground.alarms.set(this.#now() + this.#retryMs(), () => {
        if (this.#state === "asking") this.#send(tries + 1);
      });
      return;
    }
    this.abandon(error);
  }

  /** `sentHeld`: the command went out when the request was known to be granted. */
  #answered(answer: Answer, from: Instant, sentHeld: boolean): void {
    if (this.#state === "ended") return;
    this.#backoff = undefined;
    const now = instant(this.#ground.clock);
    if (answer.state === "held" || answer.state === "pending") {
      const lease = { from, ttlMs: answer.ttlMs };
      if (!this.#isSure(now)) this.#doubted = true;
      this.#sure = laterLease(this.#sure ?? lease, lease);
      this.#lease = this.#lease === undefined ? lease : laterLease(this.#lease, lease);
    }
    if (this.#state === "held" || this.#state === "confirming") this.#confirmed(answer, sentHeld);
    else this.#advance(answer, now);
  }

  /** An answer while waiting. */
  #advance(answer: Answer, now: Instant): void {
    switch (answer.state) {
      case "busy":
        this.#finish("busy");
        break;
      case "gone":
        this.#finish("lapsed");
        break;
      case "held":
        this.#token = answer.token;
        this.#handOver(0, now);
        break;
      case "pending":
        this.#state = "pending";
        this.#schedule(answer.recheckMs);
        if (this.#rung !== undefined) this.granted(this.#rung);
        break;
      default:
        answer satisfies never;
    }
  }

  /** An answer while held. Anything but "held, with my token" means that it is ours no more. */
  #confirmed(answer: Answer, sentHeld: boolean): void {
    if (answer.state === "held" && answer.token === this.#token) return;
    // A keep-alive that was on its way when the bell rang may still answer "pending".
    if (answer.state === "pending" && !sentHeld) return;
    this.#lose(answer.state === "gone" ? answer.reason : "expired");
    if (answer.state !== "gone") void this.#withdraw();
  }

  #schedule(recheckMs: number | null): void {
    this.#alarm?.cancel();
    const keepAliveMs = renewalDueMs(this.lease());
    const atMs = recheckMs === null ? keepAliveMs : Math.min(keepAliveMs, this.#now() + recheckMs + 1);
    this.#alarm = this.#ground.alarms.set(atMs, () => this.check());
  }

  /** Asks the store how things stand: a keep-alive while pending, a renewal while held. */
  check(): void {
    if (this.#state === "ended") return;
    if (this.#state === "asking" || this.#renewing !== undefined) {
      this.#checkAgain = true;
      return;
    }
    this.renew().catch((error: unknown) => this.#keepAliveFailed(error));
  }

  #keepAliveFailed(error: unknown): void {
    if (this.#state !== "pending") return;
    if (this.#now() >= deadlineMs(this.lease())) {
      this.abandon(new EngineUnavailableError("the engine has not answered while waiting", { cause: error }));
      return;
    }
    const atMs = Math.min(this.#now() + this.#retryMs(), deadlineMs(this.lease()));
    this.#alarm?.cancel();
    this.#alarm = this.#ground.alarms.set(atMs, () => this.check());
  }

  /** A bell said that the request is granted. */
  granted(token: bigint): void {
    if (this.#state === "asking") {
      // It came before the reply, which brings the lease; #advance comes back here.
      this.#rung = token;
    } else if (this.#state === "pending") {
      const now = instant(this.#ground.clock);
      if (this.#isSure(now)) {
        this.#token = token;
        this.#handOver(0, now);
      } else {
        this.check();
      }
    }
  }

  /** Whether the request has certainly been in the queue without a break since it was first sent. */
  #isSure(now: Instant): boolean {
    if (this.#doubted || this.#sure === undefined) return false;
    return remainingMs(this.#sure, now) > 0;
  }

  /** Hands the lock to its caller, but never one whose lease is (nearly) over. */
  #handOver(slow: number, now: Instant): void {
    this.#alarm?.cancel();
    const left = remainingMs(this.lease(), now);
    const enough = this.#graceMs + this.ask.pendingTtlMs / 3;
    if (left >= enough || (slow > 0 && left > this.#graceMs)) {
      this.#state = "held";
      this.#finish("held");
      return;
    }
    if (slow >= SLOW_RENEWALS) {
      this.abandon(new EngineUnavailableError(`the engine answers too slowly for a ttlMs of ${this.ask.ttlMs}`));
      return;
    }
    this.#state = "confirming";
    this.renew().then(
      () => {
        if (this.#state === "confirming") this.#handOver(slow + 1, instant(this.#ground.clock));
      },
      (error: unknown) => {
        if (this.#state === "confirming") this.abandon(error);
      },
    );
  }

  #finish(outcome: Outcome): void {
    const settle = this.#settle;
    this.#alarm?.cancel();
    if (outcome !== "held") this.#end();
    this.#settle = undefined;
    this.#fail = undefined;
    settle?.(outcome);
  }

  renew(): Promise<void> {
    if (this.#state === "ended") return Promise.reject(lossError(this.ask.name, this.#loss ?? "closed"));
    this.#renewing ??= this.#renewOnce().finally(() => {
      this.#renewing = undefined;
      this.#checkIfRung();
    });
    return this.#renewing;
  }

  /** A bell that rang while a command was under way may be about what came after it. */
  #checkIfRung(): void {
    if (!this.#checkAgain) return;
    this.#checkAgain = false;
    this.check();
  }

  async #renewOnce(): Promise<void> {
    const from = instant(this.#ground.clock);
    const sentHeld = this.#token !== undefined;
    const { name, owner, ttlMs, pendingTtlMs: pendingMs } = this.ask;
    const answer = await this.#ground.renewals.renew({ name, owner, ttlMs, pendingTtlMs: pendingMs });
    if (this.#state === "ended") return;
    this.#answered(answer, from, sentHeld);
    if (this.#loss !== undefined) throw lossError(this.ask.name, this.#loss);
  }

  release(): Promise<void> {
    const token = this.#token;
    if (this.#departure !== undefined) return this.#departure;
    if (token === undefined || this.#loss !== undefined) return Promise.resolve();
    const { name, owner } = this.ask;
    return this.#depart(() => this.#ground.store.release(name, owner, token));
  }

  discard(): Promise<void> {
    return this.#departure ?? this.#withdraw();
  }

  onLoss(listener: (reason: LossReason) => void): void {
    this.#lossListener = listener;
    if (this.#loss !== undefined) listener(this.#loss);
  }

  #withdraw(): Promise<void> {
    const { name, owner } = this.ask;
    const asked = this.#asked;
    // Behind the command that adds the request, so as not to overtake it.
    return this.#depart(() => asked.then(() => this.#ground.store.withdraw(name, owner)));
  }

  #depart(leave: () => Promise<void>): Promise<void> {
    this.#state = "ended";
    const lease = this.#lease;
    const untilMs = lease === undefined ? this.#now() + this.ask.ttlMs : lease.from.monoMs + lease.ttlMs;
    this.#departure = this.#ground.departures.depart(leave, untilMs);
    this.#end();
    return this.#departure;
  }

  #lose(reason: LossReason): void {
    if (this.#state === "confirming") {
      // Not handed over yet: nobody has lost anything, the request queues again.
      this.#finish("lapsed");
      return;
    }
    this.#loss = reason;
    this.#end();
    this.#lossListener?.(reason);
  }

  /** The engine closes: whoever waits is told. */
  close(): void {
    this.abandon(new ClosedError());
  }

  #end(): void {
    this.#state = "ended";
    this.#alarm?.cancel();
    this.#settle = undefined;
    this.#fail = undefined;
    this.#ground.leave(this);
  }

  /** How long to wait before the next try; grows until an answer comes. */
  #retryMs(): number {
    const longestMs = Math.max(FIRST_RETRY_MS, this.ask.pendingTtlMs / 6);
    this.#backoff ??= new Backoff(this.#ground.clock, FIRST_RETRY_MS, longestMs);
    return this.#backoff.next();
  }

  #now(): number {
    return this.#ground.clock.monotonicMs();
  }
}
