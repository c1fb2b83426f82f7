/**
 * One attempt to get a lock: all nodes are asked at once, and whoever answers first decides. Costs one round trip to the
 * quorum's slowest node when their counters agree, two when some have to be raised.
 *
 * Source: Redlock (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) for the quorum of leases;
 * the token is agreed on as a ballot number is in Paxos. See docs/engines/redlock.md.
 */
import { instant, type Clock, type Instant, type Timer } from "../../engine/clock.ts";
import type { RedlockNode } from "./node.ts";
import { ACQUIRE, lockKey, NODE_KEY, RAISE } from "./scripts.ts";
import { Tally } from "./tally.ts";
import type { Terms } from "./terms.ts";
import type { Touched } from "./touched.ts";

export interface Wish {
  readonly name: string;
  readonly owner: string;
  /** What the nodes keep. */
  readonly leaseMs: number;
  readonly proposal: number;
  /** JSON, shown by `query()`. */
  readonly client: string;
  /** Every node that is asked is added: it may hold the owner's vote until it is told otherwise. */
  readonly touched: Touched;
}

export type BallotResult =
  /** `from`: the instant before anything was sent. `voters`: by index; those whose votes arrive later are still added. */
  | { readonly state: "won"; readonly token: number; readonly from: Instant; readonly voters: ReadonlySet<number> }
  /**
   * `freeInMs`: when a quorum of nodes would be free if nobody released. `held`: one owner may have a quorum; otherwise
   * the votes are split and nobody holds the lock.
   */
  | { readonly state: "busy"; readonly freeInMs: number; readonly held: boolean; readonly highest: number }
  /** Too few nodes answered. */
  | { readonly state: "silent"; readonly why: string; readonly highest: number };

export interface Electorate {
  readonly nodes: readonly RedlockNode[];
  readonly terms: Terms;
  readonly clock: Clock;
  /** Whether the node's vote counts, by its clock. */
  trusts(node: RedlockNode): boolean;
}

export class Ballot {
  readonly #electorate: Electorate;
  readonly #wish: Wish;
  readonly #tally: Tally;
  readonly #busy = new Map<number, { leftMs: number; bell: string }>();
  readonly #silent = new Map<number, string>();
  readonly #done: (result: BallotResult) => void;
  readonly #from: Instant;
  readonly #voters = new Set<number>();
  #timer: Timer | undefined;
  #open = true;
  #highest = 0;

  private constructor(electorate: Electorate, wish: Wish, done: (result: BallotResult) => void) {
    this.#electorate = electorate;
    this.#wish = wish;
    this.#done = done;
    this.#tally = new Tally(electorate.terms.nodes, electorate.terms.quorum);
    this.#from = instant(electorate.clock);
  }

  /** Holds the ballot. Never rejects. What was set on nodes is for the caller to release unless it was won. */
  static hold(electorate: Electorate, wish: Wish): Promise<BallotResult> {
    return new Promise((resolve) => new Ballot(electorate, wish, resolve).#start());
  }

  #start(): void {
    const { nodes, terms } = this.#electorate;
    const { name, owner, leaseMs, proposal, client, touched } = this.#wish;
    const keys = [lockKey(name), NODE_KEY];
    const tail = [owner, String(leaseMs), String(proposal), String(terms.rememberMs), client];
    const able: RedlockNode[] = [];
    for (const node of nodes) {
      if (node.admitted) able.push(node);
      else this.#withhold(node, node.incarnation === undefined ? node.lastError : "not admitted");
    }
    if (!this.#open) return;
    for (const node of able) {
      touched.asked(node);
      node.eval(ACQUIRE, keys, [node.run, String(terms.maxTtlMs), ...tail]).then(
        (reply) => {
          touched.answered(node);
          this.#answered(node, reply);
        },
        (error: unknown) => {
          touched.answered(node);
          this.#withhold(node, messageOf(error));
        },
      );
    }
    this.#await();
  }

  /** Nodes that have not answered by then are counted out of this round. */
  #await(): void {
    const { clock, terms } = this.#electorate;
    this.#timer?.cancel();
    this.#timer = clock.after(terms.nodeTimeoutMs, () => {
      // After a blocked event loop the answers may be here, unread: one more turn.
      this.#timer = clock.after(0, () => this.#late());
    });
  }

  #late(): void {
    const why = `no answer within ${this.#electorate.terms.nodeTimeoutMs} ms`;
    for (const node of this.#electorate.nodes) {
      if (this.#busy.has(node.index) || this.#silent.has(node.index)) continue;
      // A voter that was asked to raise its counter has not said that it did.
      if (this.#voters.has(node.index)) this.#tally.refused(node.index);
      else {
        this.#silent.set(node.index, why);
        this.#tally.withheld(node.index);
      }
    }
    this.#decide();
  }

  #answered(node: RedlockNode, reply: readonly unknown[]): void {
    const [verdict, , , counter, leftMs, bell] = reply;
    if (verdict === "foreign") {
      node.markForeign();
      this.#withhold(node, "not admitted");
      return;
    }
    this.#highest = Math.max(this.#highest, Number(counter));
    if (verdict === "busy") {
      this.#busy.set(node.index, { leftMs: Number(leftMs), bell: String(bell) });
      this.#tally.withheld(node.index);
    } else if (!this.#electorate.trusts(node)) {
      this.#withhold(node, "its clock is out of step");
      return;
    } else {
      this.#voters.add(node.index);
      this.#tally.voted(node.index, Number(counter));
    }
    this.#decide();
  }

  #withhold(node: RedlockNode, why: string): void {
    this.#silent.set(node.index, why);
    this.#tally.withheld(node.index);
    this.#decide();
  }

  #decide(): void {
    // Late voters are raised as well, without waiting: it spares the next ballot a round.
    this.#raise();
    if (!this.#open) return;
    const { state, token } = this.#tally;
    if (state === "open") return;
    this.#open = false;
    this.#timer?.cancel();
    if (state === "won" && token !== undefined)
      this.#done({ state: "won", token, from: this.#from, voters: this.#voters });
    else this.#done(this.#lost());
  }

  #raise(): void {
    const { token } = this.#tally;
    const indices = this.#tally.toRaise();
    if (token === undefined || indices.length === 0) return;
    const { terms } = this.#electorate;
    const { name, owner } = this.#wish;
    for (const node of this.#electorate.nodes) {
      if (!indices.includes(node.index)) continue;
      const args = [node.run, String(terms.maxTtlMs), owner, String(token), String(terms.rememberMs)];
      node.eval(RAISE, [lockKey(name), NODE_KEY], args).then(
        ([verdict]) => this.#raised(node, verdict === "accepted"),
        () => this.#raised(node, false),
      );
    }
    if (this.#open) this.#await();
  }

  #raised(node: RedlockNode, accepted: boolean): void {
    if (accepted) this.#tally.accepted(node.index);
    else this.#tally.refused(node.index);
    this.#decide();
  }

  #lost(): BallotResult {
    const { nodes, terms } = this.#electorate;
    const highest = this.#highest;
    if (this.#silent.size > terms.nodes - terms.quorum) {
      const why = nodes.flatMap(({ index, label }) => {
        const reason = this.#silent.get(index);
        return reason === undefined ? [] : [`${label}: ${reason}`];
      });
      return { state: "silent", why: why.join("; "), highest };
    }
    const lefts = [...this.#busy.values()].map(({ leftMs }) => leftMs).sort((left, right) => left - right);
    const missing = terms.quorum - this.#tally.votes;
    const byBell = new Map<string, number>();
    for (const { bell } of this.#busy.values()) byBell.set(bell, (byBell.get(bell) ?? 0) + 1);
    // Nodes that have not said may have voted for the one with the most votes.
    const unheard = terms.nodes - this.#tally.votes - this.#busy.size;
    const held = Math.max(0, ...byBell.values()) + unheard >= terms.quorum;
    return { state: "busy", freeInMs: missing > 0 ? (lefts[missing - 1] ?? lefts.at(-1) ?? 0) : 0, held, highest };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
