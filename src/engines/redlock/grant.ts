/** A lock that is held by a quorum of nodes. */
import { instant } from "../../engine/clock.ts";
import type { Departures } from "../../engine/departures.ts";
import type { Grant, Lease } from "../../engine/engine.ts";
import { EngineUnavailableError, lossError, type LossReason } from "../../engine/errors.ts";
import { laterLease, remainingMs } from "../../engine/lease.ts";
import type { Electorate } from "./ballot.ts";
import type { RenewalResult, Renewals } from "./renewals.ts";
import { BELL_PREFIX, lockKey, RELEASE, waitKey } from "./scripts.ts";
import type { Touched } from "./touched.ts";

export interface GrantGround {
  readonly electorate: Electorate;
  readonly departures: Departures;
  readonly renewals: Renewals;
  /** The grant is over. */
  forget(grant: RedlockGrant): void;
}

export interface Won {
  readonly name: string;
  readonly owner: string;
  readonly client: string;
  readonly ttlMs: number;
  readonly leaseMs: number;
  readonly token: bigint;
  readonly lease: Lease;
  readonly touched: Touched;
  /** Nodes whose votes have arrived, by index; late ones are still added. */
  readonly voters: ReadonlySet<number>;
}

export class RedlockGrant implements Grant {
  readonly token: bigint;
  readonly name: string;
  readonly #ground: GrantGround;
  readonly #won: Won;
  #lease: Lease;
  /** Nodes whose votes arrived while the lease was running. */
  #voters: ReadonlySet<number>;
  /** Nodes that may have lost the lock and set it again: all that have not said "held" in every round. */
  readonly #unsure = new Set<number>();
  /** When the last renewal went out, which may have made the lease on the nodes longer than we know. Monotonic. */
  #askedAtMs = -Infinity;
  #renewing: Promise<void> | undefined;
  #leaving: Promise<void> | undefined;
  #loss: LossReason | undefined;
  #lossListener: ((reason: LossReason) => void) | undefined;

  constructor(ground: GrantGround, won: Won) {
    this.#ground = ground;
    this.#won = won;
    this.#lease = won.lease;
    this.#voters = new Set(won.voters);
    this.token = won.token;
    this.name = won.name;
  }

  lease(): Lease {
    return this.#lease;
  }

  renew(): Promise<void> {
    if (this.#loss !== undefined || this.#leaving !== undefined) {
      return Promise.reject(lossError(this.name, this.#loss ?? "closed"));
    }
    this.#renewing ??= this.#renewOnce().finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  release(): Promise<void> {
    if (this.#loss !== undefined && this.#leaving === undefined) return Promise.resolve();
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  /** There is no minimum hold to spare. */
  discard(): Promise<void> {
    return this.release();
  }

  onLoss(listener: (reason: LossReason) => void): void {
    this.#lossListener = listener;
    if (this.#loss !== undefined) listener(this.#loss);
  }

  async #renewOnce(): Promise<void> {
    const { name, owner, leaseMs, client, touched } = this.#won;
    if (this.#running()) this.#voters = new Set(this.#won.voters);
    this.#askedAtMs = this.#ground.electorate.clock.monotonicMs();
    const result = await this.#ground.renewals.renew({ name, owner, leaseMs, client, touched, token: this.token });
    if (this.#leaving !== undefined) return;
    this.#count(result);
    if (this.#loss !== undefined) throw lossError(name, this.#loss);
  }

  /** Throws when the nodes that confirmed the lock are no quorum, and it may still be tried again. */
  #count({ answers, from }: RenewalResult): void {
    const { terms } = this.#ground.electorate;
    const saying = (word: string): number[] => answers.flatMap((answer, node) => (answer === word ? [node] : []));
    if (saying("evicted").length > 0) {
      this.#lose("evicted");
      return;
    }
    const held = saying("held");
    // While the lease still runs, the nodes of the last quorum vouch for the time before this round. Afterwards only those
    // do that cannot have lost the lock and set it again: they voted, and nothing that they were asked is unanswered.
    const sure = (node: number): boolean => this.#voters.has(node) && !this.#unsure.has(node);
    const vouching = this.#running() ? held : held.filter(sure);
    for (const [node, answer] of answers.entries()) if (answer !== "held") this.#unsure.add(node);
    if (vouching.length >= terms.quorum) {
      this.#lease = laterLease(this.#lease, { from, ttlMs: this.#won.ttlMs });
      return;
    }
    if (saying("lost").length > terms.nodes - terms.quorum) {
      this.#lose("expired");
      return;
    }
    const counts = `${held.length} of ${terms.nodes} nodes confirmed the renewal, ${terms.quorum} are needed`;
    throw new EngineUnavailableError(`lock ${JSON.stringify(this.name)}: ${counts}`);
  }

  #running(): boolean {
    return remainingMs(this.#lease, instant(this.#ground.electorate.clock)) > 0;
  }

  #lose(reason: LossReason): void {
    if (this.#loss !== undefined) return;
    this.#loss = reason;
    void this.#leave();
    this.#lossListener?.(reason);
  }

  #leave(): Promise<void> {
    this.#ground.forget(this);
    const { name, owner, leaseMs, touched } = this.#won;
    const untilMs = Math.max(this.#lease.from.monoMs, this.#askedAtMs) + leaseMs;
    const leaving = { name, owner, touched, untilMs, ring: true };
    return leaveNodes(this.#ground.electorate, this.#ground.departures, leaving);
  }
}

export interface Leaving {
  readonly name: string;
  readonly owner: string;
  readonly touched: Touched;
  /** When its leases on the nodes end by themselves, on our monotonic clock. */
  readonly untilMs: number;
  /** Whether to ring those who wait. */
  readonly ring: boolean;
}

/**
 * Takes the owner's votes back on every node that was asked: those that did not answer may have voted as well. Resolves
 * when a quorum is free of them (the next one needs no more); the rest goes on in the background until `untilMs`. Never
 * rejects.
 */
export function leaveNodes({ nodes, terms }: Electorate, departures: Departures, leaving: Leaving): Promise<void> {
  const { name, owner, untilMs, ring } = leaving;
  const keys = [lockKey(name), waitKey(name)];
  const args = [owner, String(terms.rememberMs), BELL_PREFIX, name, ring ? "1" : "0"];
  const left = new Set(leaving.touched.leave());
  return new Promise((resolve) => {
    const leave = (): Promise<void> =>
      new Promise((leftAll, failed) => {
        let open = left.size;
        let failure: unknown;
        const settled = (): void => {
          if (--open > 0) return;
          if (left.size === 0) leftAll();
          else failed(failure);
        };
        if (open === 0) leftAll();
        for (const node of left) {
          const release = (): void => {
            node.eval(RELEASE, keys, args).then(
              () => {
                left.delete(node);
                if (nodes.length - left.size >= terms.quorum) resolve();
                settled();
              },
              (error: unknown) => {
                failure = error;
                settled();
              },
            );
          };
          // Behind what is still on its way, which would be in the way of our own next ballot; and again when that has its
          // answer: it may have had to be sent again, and then came behind the first release.
          if (!leaving.touched.isAnswered(node)) node.eval(RELEASE, keys, args).catch(() => {});
          leaving.touched.whenAnswered(node, release);
        }
      });
    void departures.depart(leave, untilMs).then(resolve);
  });
}
