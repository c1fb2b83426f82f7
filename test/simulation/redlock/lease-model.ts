/**
 * The leases of redlock as a model with a clock that ticks: ballots, renewals that set the lock again on nodes that have lost
 * it, late messages and lost replies, nodes that crash and forget, the quarantine, and clocks that jump.
 *
 * Promise: two holders are never inside their deadlines at the same time, and nobody goes on holding after another has
 * held in between.
 */
import type { Emit, Model } from "./explorer.ts";

export interface LeaseOptions {
  readonly nodes: number;
  readonly ballots: number;
  /** The lease, in ticks; its holder counts on one tick less. Default 3. */
  readonly lease?: number;
  /** How many rounds of renewal the first ballot may begin. */
  readonly renewals?: number;
  /**
   * Who vouches for the time before a round that ends after the deadline. "right": nodes that voted, and have said "held"
   * in every round. Mistakes: "anybody"; "heard": all but those that said that they set the lock again (a reply may be
   * lost).
   */
  readonly vouching?: "right" | "anybody" | "heard";
  /** How many nodes may crash and forget everything. */
  readonly crashes?: number;
  /** How many ticks such a node stays without a vote. Default: the lease. */
  readonly quarantine?: number;
  /** How many times a node's clock may jump past the end of its lease. The guard is not in this model: one is a mistake. */
  readonly jumps?: number;
}

const MARGIN = 1;
const IDLE = 0;
const ASKING = 1;
const HOLDING = 2;
const OVER = 3;
const PHASES = ["idle", "asking", "holding", "over"];

const KINDS = [
  "time goes on",
  "ballot B begins",
  "ballot B wins",
  "ballot B ends",
  "ballot B asks node N, the reply is lost",
  "ballot B asks node N",
  "ballot B begins to renew",
  "ballot B renews node N, the reply is lost",
  "ballot B renews node N",
  "ballot B has renewed",
  "ballot B's lock is taken off node N",
  "node N is restarted",
  "the clock of node N jumps",
];
const [TICK, BEGINS, WINS, ENDS, ASK_LOST, ASKS, RENEWS, RENEW_LOST, RENEWED, HAS_RENEWED] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
];
const [TAKEN_OFF, RESTARTED, JUMPS] = [10, 11, 12];

const GLOBALS = 3;
const CRASHES = 0;
const JUMPS_LEFT = 1;
const WINNER = 2; // who won last, plus one
const BALLOT = 5;
const PHASE = 0;
const ELAPSED = 1; // since it was sent
const LEFT = 2; // of what its holder counts on
const ROUND = 3; // ticks since the renewal was sent, plus one; 0: none under way
const ROUNDS = 4; // renewals that it may still begin
const NODE = 3;
const OWNER = 0;
const EXPIRY = 1; // ticks left
const QUARANTINE = 2;
const MESSAGE = 3;
const ASK = 0; // NONE, SENT, SILENT or VOTED
const RENEW = 1; // NONE, SENT, SILENT, VOTED (it was there) or JOINED (it was set again)
const UNSURE = 2; // it may have lost the lock and set it again
const NONE = 0;
const SENT = 1;
const SILENT = 2;
const VOTED = 3;
const JOINED = 4;

export class LeaseModel implements Model {
  readonly size: number;
  readonly #options: Required<LeaseOptions>;
  readonly #quorum: number;
  readonly #nodesAt: number;
  readonly #block: number;
  readonly #next: Uint8Array;
  readonly #sorted: Uint8Array;
  readonly #order: Uint8Array;

  constructor(options: LeaseOptions) {
    const lease = options.lease ?? 3;
    const defaults = { renewals: 0, vouching: "right", crashes: 0, jumps: 0, quarantine: lease } as const;
    this.#options = { ...defaults, ...options, lease };
    this.#quorum = Math.floor(options.nodes / 2) + 1;
    this.#nodesAt = GLOBALS + options.ballots * BALLOT;
    this.#block = NODE + options.ballots * MESSAGE;
    this.size = this.#nodesAt + options.nodes * this.#block;
    this.#next = new Uint8Array(this.size);
    this.#sorted = new Uint8Array(this.size);
    this.#order = new Uint8Array(options.nodes);
  }

  initial(): Uint8Array {
    const state = new Uint8Array(this.size);
    state[CRASHES] = this.#options.crashes;
    state[JUMPS_LEFT] = this.#options.jumps;
    state[this.#ballot(0) + ROUNDS] = this.#options.renewals;
    return state;
  }

  steps(state: Uint8Array, emit: Emit): void {
    const { nodes, ballots } = this.#options;
    for (let ballot = 0; ballot < ballots; ballot++) {
      this.#ballotSteps(state, ballot, emit);
      for (let node = 0; node < nodes; node++) this.#messageSteps(state, ballot, node, emit);
    }
    for (let node = 0; node < nodes; node++) this.#nodeSteps(state, node, emit);
    const next = this.#begin(state);
    this.#tick(next);
    emit(next, code(TICK, 0, 0));
  }

  #ballotSteps(state: Uint8Array, ballot: number, emit: Emit): void {
    const { nodes } = this.#options;
    const at = this.#ballot(ballot);
    const phase = byte(state, at + PHASE);
    const former = ballot === 0 ? OVER : byte(state, this.#ballot(ballot - 1) + PHASE);
    if (phase === IDLE && former !== IDLE) {
      const next = this.#begin(state);
      next[at + PHASE] = ASKING;
      for (let node = 0; node < nodes; node++) next[this.#message(ballot, node) + ASK] = SENT;
      emit(next, code(BEGINS, ballot, 0));
    }
    if (phase === ASKING && this.#count(state, ballot, ASK, VOTED) >= this.#quorum) {
      const left = this.#options.lease - MARGIN - byte(state, at + ELAPSED);
      if (left > 0) {
        const next = this.#begin(state);
        next[at + PHASE] = HOLDING;
        next[WINNER] = ballot + 1;
        this.#prolong(next, ballot, left);
        emit(next, code(WINS, ballot, 0), this.#twoHolders(next));
      }
    }
    if (phase === HOLDING) this.#renewalSteps(state, ballot, emit);
    if (phase === ASKING || phase === HOLDING) {
      const next = this.#begin(state);
      next.fill(0, at, at + BALLOT);
      next[at + PHASE] = OVER;
      for (let node = 0; node < nodes; node++) {
        // What is under way stays under way: it may be carried out late.
        const message = this.#message(ballot, node);
        if (byte(next, message + ASK) !== SENT) next[message + ASK] = NONE;
        if (byte(next, message + RENEW) !== SENT) next[message + RENEW] = NONE;
        next[message + UNSURE] = 0;
      }
      emit(next, code(ENDS, ballot, 0));
    }
  }

  #renewalSteps(state: Uint8Array, ballot: number, emit: Emit): void {
    const { nodes, lease } = this.#options;
    const at = this.#ballot(ballot);
    const round = byte(state, at + ROUND);
    if (round === 0) {
      if (byte(state, at + ROUNDS) === 0 || this.#count(state, ballot, RENEW, SENT) > 0) return;
      const next = this.#begin(state);
      next[at + ROUND] = 1;
      next[at + ROUNDS] = byte(next, at + ROUNDS) - 1;
      for (let node = 0; node < nodes; node++) next[this.#message(ballot, node) + RENEW] = SENT;
      emit(next, code(RENEWS, ballot, 0));
      return;
    }
    const next = this.#begin(state);
    // While its lease runs, the nodes of the last quorum vouch for the time before this round.
    const running = byte(state, at + LEFT) > 0;
    let vouching = 0;
    const { vouching: rule } = this.#options;
    for (let node = 0; node < nodes; node++) {
      const message = this.#message(ballot, node);
      const answer = byte(state, message + RENEW);
      const voted = byte(state, message + ASK) === VOTED || rule !== "right";
      const sure = (voted && byte(state, message + UNSURE) === 0) || rule === "anybody";
      if (answer === VOTED && (running || sure)) vouching++;
      if (rule === "heard" ? answer === JOINED : answer !== VOTED) next[message + UNSURE] = 1;
      if (answer !== SENT) next[message + RENEW] = NONE;
    }
    next[at + ROUND] = 0;
    const left = lease - MARGIN - (round - 1);
    if (vouching >= this.#quorum && left > 0) {
      this.#prolong(next, ballot, Math.max(left, byte(state, at + LEFT)));
      if (byte(state, WINNER) !== ballot + 1) {
        emit(next, code(HAS_RENEWED, ballot, 0), "went on holding after another had held in between");
        return;
      }
    }
    emit(next, code(HAS_RENEWED, ballot, 0), this.#twoHolders(next));
  }

  #messageSteps(state: Uint8Array, ballot: number, node: number, emit: Emit): void {
    const message = this.#message(ballot, node);
    const phase = byte(state, this.#ballot(ballot) + PHASE);
    if (byte(state, message + ASK) === SENT) {
      const next = this.#begin(state);
      const voted = this.#carryOutAsk(next, ballot, node);
      next[message + ASK] = phase === OVER ? NONE : SILENT;
      emit(next, code(ASK_LOST, ballot, node));
      // A vote that arrives after the deadline proves nothing about the time before.
      if ((phase === ASKING || byte(state, this.#ballot(ballot) + LEFT) > 0) && voted) {
        next[message + ASK] = VOTED;
        emit(next, code(ASKS, ballot, node));
      }
    }
    if (byte(state, message + RENEW) === SENT) {
      const next = this.#begin(state);
      const answer = this.#carryOutRenew(next, ballot, node);
      const counts = phase === HOLDING && byte(state, this.#ballot(ballot) + ROUND) > 0;
      next[message + RENEW] = counts ? SILENT : NONE;
      emit(next, code(RENEW_LOST, ballot, node));
      if (counts && answer !== SILENT) {
        next[message + RENEW] = answer;
        emit(next, code(RENEWED, ballot, node));
      }
    }
  }

  #nodeSteps(state: Uint8Array, node: number, emit: Emit): void {
    const at = this.#node(node);
    const owner = byte(state, at + OWNER);
    const { quarantine } = this.#options;
    if (owner !== 0 && byte(state, this.#ballot(owner - 1) + PHASE) === OVER) {
      const next = this.#begin(state);
      this.#free(next, node);
      emit(next, code(TAKEN_OFF, owner - 1, node));
    }
    if (owner !== 0 && byte(state, JUMPS_LEFT) > 0) {
      const next = this.#begin(state);
      next[JUMPS_LEFT] = byte(next, JUMPS_LEFT) - 1;
      this.#free(next, node);
      emit(next, code(JUMPS, 0, node));
    }
    if (byte(state, CRASHES) > 0) {
      const next = this.#begin(state);
      next[CRASHES] = byte(next, CRASHES) - 1;
      this.#free(next, node);
      next[at + QUARANTINE] = quarantine;
      // A restart breaks every connection: what is under way is never carried out.
      for (let ballot = 0; ballot < this.#options.ballots; ballot++) {
        for (const field of [ASK, RENEW]) {
          const message = this.#message(ballot, node) + field;
          if (byte(next, message) === SENT) next[message] = SILENT;
        }
      }
      emit(next, code(RESTARTED, 0, node));
    }
  }

  #carryOutAsk(next: Uint8Array, ballot: number, node: number): boolean {
    const at = this.#node(node);
    const owner = byte(next, at + OWNER);
    if (byte(next, at + QUARANTINE) > 0 || (owner !== 0 && owner !== ballot + 1)) return false;
    next[at + OWNER] = ballot + 1;
    next[at + EXPIRY] = this.#options.lease;
    return true;
  }

  #carryOutRenew(next: Uint8Array, ballot: number, node: number): number {
    const own = byte(next, this.#node(node) + OWNER) === ballot + 1;
    return this.#carryOutAsk(next, ballot, node) ? (own ? VOTED : JOINED) : SILENT;
  }

  #prolong(next: Uint8Array, ballot: number, left: number): void {
    const at = this.#ballot(ballot);
    next[at + LEFT] = left;
    next[at + ELAPSED] = 0;
  }

  #tick(next: Uint8Array): void {
    const { nodes, ballots, lease } = this.#options;
    for (let node = 0; node < nodes; node++) {
      const at = this.#node(node);
      if (byte(next, at + EXPIRY) === 1) this.#free(next, node);
      else if (byte(next, at + EXPIRY) > 0) next[at + EXPIRY] = byte(next, at + EXPIRY) - 1;
      if (byte(next, at + QUARANTINE) > 0) next[at + QUARANTINE] = byte(next, at + QUARANTINE) - 1;
    }
    for (let ballot = 0; ballot < ballots; ballot++) {
      const at = this.#ballot(ballot);
      if (byte(next, at + PHASE) === ASKING) next[at + ELAPSED] = Math.min(lease, byte(next, at + ELAPSED) + 1);
      if (byte(next, at + LEFT) > 0) next[at + LEFT] = byte(next, at + LEFT) - 1;
      if (byte(next, at + ROUND) > 0) next[at + ROUND] = Math.min(lease + 1, byte(next, at + ROUND) + 1);
    }
  }

  #free(next: Uint8Array, node: number): void {
    next[this.#node(node) + OWNER] = 0;
    next[this.#node(node) + EXPIRY] = 0;
  }

  #twoHolders(state: Uint8Array): string | undefined {
    let holders = 0;
    for (let ballot = 0; ballot < this.#options.ballots; ballot++) {
      if (byte(state, this.#ballot(ballot) + LEFT) > 0) holders++;
    }
    return holders > 1 ? "two holders inside their deadlines" : undefined;
  }

  #count(state: Uint8Array, ballot: number, field: number, value: number): number {
    let count = 0;
    for (let node = 0; node < this.#options.nodes; node++) {
      if (byte(state, this.#message(ballot, node) + field) === value) count++;
    }
    return count;
  }

  /** Nodes are alike: sorted by what is known of them. */
  canonical(state: Uint8Array): Uint8Array {
    const order = this.#order;
    let moved = false;
    for (let node = 0; node < order.length; node++) {
      let place = node;
      while (place > 0 && this.#compare(state, byte(order, place - 1), node) > 0) {
        order[place] = byte(order, place - 1);
        place--;
        moved = true;
      }
      order[place] = node;
    }
    if (!moved) return state;
    this.#sorted.set(state.subarray(0, this.#nodesAt));
    for (let place = 0; place < order.length; place++) {
      const from = this.#node(byte(order, place));
      for (let offset = 0; offset < this.#block; offset++) {
        this.#sorted[this.#node(place) + offset] = byte(state, from + offset);
      }
    }
    return this.#sorted;
  }

  #compare(state: Uint8Array, left: number, right: number): number {
    for (let offset = 0; offset < this.#block; offset++) {
      const difference = byte(state, this.#node(left) + offset) - byte(state, this.#node(right) + offset);
      if (difference !== 0) return difference;
    }
    return 0;
  }

  label(step: number): string {
    const text = KINDS[step >> 6] ?? "";
    return text.replace("B", String((step >> 3) & 7)).replace("N", String(step & 7));
  }

  describe(state: Uint8Array): string {
    const nodes = Array.from({ length: this.#options.nodes }, (_, node) => {
      const at = this.#node(node);
      const owner = byte(state, at + OWNER);
      const vote = byte(state, at + QUARANTINE) === 0 ? "" : " no vote";
      return `[${owner === 0 ? "free" : `ballot ${owner - 1} for ${byte(state, at + EXPIRY)}`}${vote}]`;
    });
    const ballots = Array.from({ length: this.#options.ballots }, (_, ballot) => {
      const at = this.#ballot(ballot);
      return `${PHASES[byte(state, at + PHASE)]} left ${byte(state, at + LEFT)}`;
    });
    return `${nodes.join(" ")} (${ballots.join(", ")})`;
  }

  #begin(state: Uint8Array): Uint8Array {
    this.#next.set(state);
    return this.#next;
  }

  #ballot(ballot: number): number {
    return GLOBALS + ballot * BALLOT;
  }

  #node(node: number): number {
    return this.#nodesAt + node * this.#block;
  }

  #message(ballot: number, node: number): number {
    return this.#node(node) + NODE + ballot * MESSAGE;
  }
}

function byte(state: Uint8Array, index: number): number {
  return state[index] as number;
}

function code(kind: number | undefined, ballot: number, node: number): number {
  return ((kind as number) << 6) | (ballot << 3) | node;
}
