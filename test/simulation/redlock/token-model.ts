/**
 * The token rule of redlock as a model: several ballots over a few nodes, with messages that come late, in any order, twice or
 * never, replies that get lost, locks that vanish at any moment (so expiry, release, clocks that jump and eviction are
 * all in it), and nodes that crash and come back with or without their memory.
 *
 * Promise: no token is granted twice, and every token is above all those granted before its ballot began.
 */
import type { Emit, Model } from "./explorer.ts";

export interface TokenOptions {
  readonly nodes: number;
  readonly ballots: number;
  /** What each ballot proposes; missing ones propose nothing. */
  readonly proposals?: readonly number[];
  /** How many nodes may crash, and whether they then forget everything. */
  readonly crashes?: number;
  readonly forgetful?: boolean;
  /** How many messages may be carried out once more. */
  readonly repeats?: number;
  /** How often a holder may set its lock again on a node that has lost it. */
  readonly joins?: number;
  /** "none": tokens are not raised; "careless": raised without asking C < t. Both are mistakes. */
  readonly raise?: "right" | "none" | "careless";
  /**
   * "right": once the ballots that were under way are over, with the counters of a quorum. Mistakes: "early": at once, with the
   * counters of a quorum; "one": those of one node; "at-once": votes right after the restart, from zero.
   */
  readonly readmission?: "right" | "early" | "one" | "at-once";
}

const IDLE = 0;
const ASKING = 1;
const RAISING = 2;
const WON = 3;
const OVER = 4;
const PHASES = ["idle", "asking", "raising", "won", "over"];

/** Kinds of steps. `B` and `N` stand for the ballot and the node. */
const KINDS = [
  "ballot B begins",
  "ballot B counts its votes",
  "ballot B wins",
  "ballot B gives up",
  "ballot B asks node N, the reply is lost",
  "ballot B asks node N",
  "ballot B asks node N once more",
  "ballot B raises node N, the reply is lost",
  "ballot B raises node N",
  "ballot B raises node N once more",
  "ballot B joins node N again",
  "the lock on node N vanishes",
  "node N is restarted",
  "node N is admitted",
  "the counter of node N is read for node B",
];
const [BEGINS, COUNTS, WINS, GIVES_UP, ASK_LOST, ASKS, ASKS_AGAIN, RAISE_LOST, RAISES, RAISES_AGAIN, JOINS_AGAIN] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
];
const [VANISHES, RESTARTED, IS_ADMITTED, IS_READ] = [11, 12, 13, 14];

/** Where things stand in a state: globals, then the ballots, then the nodes with the messages between both. */
const GLOBALS = 6;
const HIGHEST = 0;
const CRASHES = 1;
const REPEATS = 2;
const JOINS = 3;
const GRANTED = 4; // bit set of tokens, two bytes
const BALLOT = 3;
const PHASE = 0;
const TOKEN = 1;
const FLOOR = 2;
const NODE = 7;
const OWNER = 0;
const COUNTER = 1;
const ADMITTED = 2;
const LIFE = 3;
const AWAITED = 4; // bit set of ballots that were under way when it crashed
const READ = 5; // bit set of nodes whose counters were read
const READ_MAX = 6;
const MESSAGE = 5;
const ASK = 0; // 0: not sent, SENT: under way, DONE: carried out or lost
const VOTE = 1; // the counter in the reply that arrived
const RAISE = 2;
const ACCEPTED = 3;
const SENT_TO = 4; // the life of the node that it was sent to
const SENT = 1;
const DONE = 2;
const MOST_TOKEN = 15;

export class TokenModel implements Model {
  readonly size: number;
  readonly #options: Required<TokenOptions>;
  readonly #quorum: number;
  readonly #nodesAt: number;
  readonly #block: number;
  readonly #next: Uint8Array;
  readonly #sorted: Uint8Array;
  readonly #order: Uint8Array;

  constructor(options: TokenOptions) {
    this.#options = {
      proposals: [],
      crashes: 0,
      forgetful: true,
      repeats: 0,
      joins: 0,
      raise: "right",
      readmission: "right",
      ...options,
    };
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
    state[REPEATS] = this.#options.repeats;
    state[JOINS] = this.#options.joins;
    for (let node = 0; node < this.#options.nodes; node++) state[this.#node(node) + ADMITTED] = 1;
    return state;
  }

  steps(state: Uint8Array, emit: Emit): void {
    const { nodes, ballots } = this.#options;
    for (let ballot = 0; ballot < ballots; ballot++) {
      this.#ballotSteps(state, ballot, emit);
      for (let node = 0; node < nodes; node++) this.#messageSteps(state, ballot, node, emit);
    }
    for (let node = 0; node < nodes; node++) this.#nodeSteps(state, node, emit);
  }

  label(code: number): string {
    const text = KINDS[code >> 6] ?? "";
    return text.replace("B", String((code >> 3) & 7)).replace("N", String(code & 7));
  }

  #begin(state: Uint8Array): Uint8Array {
    this.#next.set(state);
    return this.#next;
  }

  #ballotSteps(state: Uint8Array, ballot: number, emit: Emit): void {
    const at = this.#ballot(ballot);
    const phase = byte(state, at + PHASE);
    const former = ballot === 0 ? OVER : byte(state, this.#ballot(ballot - 1) + PHASE);
    if (phase === IDLE && former !== IDLE) {
      const next = this.#begin(state);
      next[at + PHASE] = ASKING;
      next[at + FLOOR] = byte(next, HIGHEST);
      for (let node = 0; node < this.#options.nodes; node++) {
        next[this.#message(ballot, node) + ASK] = SENT;
        next[this.#message(ballot, node) + SENT_TO] = byte(next, this.#node(node) + LIFE);
      }
      emit(next, code(BEGINS, ballot, 0));
    }
    if (phase === ASKING && this.#count(state, ballot, VOTE) >= this.#quorum) {
      const next = this.#begin(state);
      this.#countVotes(next, ballot);
      emit(next, code(COUNTS, ballot, 0));
    }
    if (phase === RAISING && this.#accepted(state, ballot) >= this.#quorum) {
      const next = this.#begin(state);
      const violation = this.#win(next, ballot);
      emit(next, code(WINS, ballot, 0), violation);
    }
    if (phase === ASKING || phase === RAISING) {
      const next = this.#begin(state);
      this.#end(next, ballot, OVER);
      emit(next, code(GIVES_UP, ballot, 0));
    }
  }

  #messageSteps(state: Uint8Array, ballot: number, node: number, emit: Emit): void {
    const at = this.#message(ballot, node);
    const phase = byte(state, this.#ballot(ballot) + PHASE);
    const ask = byte(state, at + ASK);
    if (ask === SENT) {
      const next = this.#begin(state);
      const vote = this.#carryOutAsk(next, ballot, node);
      next[at + ASK] = DONE;
      emit(next, code(ASK_LOST, ballot, node));
      if (phase === ASKING && vote > 0) {
        next[at + VOTE] = vote;
        emit(next, code(ASKS, ballot, node));
      }
    } else if (ask === DONE && byte(state, REPEATS) > 0) {
      const next = this.#begin(state);
      next[REPEATS] = byte(next, REPEATS) - 1;
      this.#carryOutAsk(next, ballot, node);
      emit(next, code(ASKS_AGAIN, ballot, node));
    }
    const raise = byte(state, at + RAISE);
    if (raise === SENT) {
      const next = this.#begin(state);
      const accepted = this.#carryOutRaise(next, ballot, node);
      next[at + RAISE] = DONE;
      emit(next, code(RAISE_LOST, ballot, node));
      if (phase === RAISING && accepted) {
        next[at + ACCEPTED] = 1;
        emit(next, code(RAISES, ballot, node));
      }
    } else if (raise === DONE && byte(state, REPEATS) > 0) {
      const next = this.#begin(state);
      next[REPEATS] = byte(next, REPEATS) - 1;
      this.#carryOutRaise(next, ballot, node);
      emit(next, code(RAISES_AGAIN, ballot, node));
    }
    const free = this.#votes(state, node) && byte(state, this.#node(node) + OWNER) === 0;
    if (phase === WON && byte(state, JOINS) > 0 && free) {
      const next = this.#begin(state);
      const counter = this.#node(node) + COUNTER;
      next[JOINS] = byte(next, JOINS) - 1;
      next[this.#node(node) + OWNER] = ballot + 1;
      next[counter] = Math.max(byte(next, counter) + 1, byte(next, this.#ballot(ballot) + TOKEN));
      emit(next, code(JOINS_AGAIN, ballot, node));
    }
  }

  #nodeSteps(state: Uint8Array, node: number, emit: Emit): void {
    const at = this.#node(node);
    if (byte(state, at + OWNER) !== 0) {
      const next = this.#begin(state);
      next[at + OWNER] = 0;
      emit(next, code(VANISHES, 0, node));
    }
    if (byte(state, CRASHES) > 0) {
      const next = this.#begin(state);
      this.#crash(next, node);
      emit(next, code(RESTARTED, 0, node));
    }
    if (byte(state, at + ADMITTED) === 1 || !this.#waitIsOver(state, node)) return;
    const read = byte(state, at + READ);
    const needed = this.#options.readmission === "one" ? 1 : this.#quorum;
    if (bits(read) >= needed) {
      const next = this.#begin(state);
      next[at + COUNTER] = Math.max(byte(next, at + COUNTER), byte(next, at + READ_MAX));
      next[at + ADMITTED] = 1;
      next.fill(0, at + AWAITED, at + READ_MAX + 1);
      emit(next, code(IS_ADMITTED, 0, node));
      return;
    }
    for (let other = 0; other < this.#options.nodes; other++) {
      if ((read >> other) & 1 || !this.#votes(state, other)) continue;
      const next = this.#begin(state);
      next[at + READ] = read | (1 << other);
      next[at + READ_MAX] = Math.max(byte(next, at + READ_MAX), byte(next, this.#node(other) + COUNTER));
      emit(next, code(IS_READ, node, other));
    }
  }

  /** The acquire script. Returns the counter, or 0 for no vote. */
  #carryOutAsk(next: Uint8Array, ballot: number, node: number): number {
    const at = this.#node(node);
    const owner = byte(next, at + OWNER);
    if (!this.#reaches(next, ballot, node) || (owner !== 0 && owner !== ballot + 1)) return 0;
    next[at + OWNER] = ballot + 1;
    const proposal = this.#options.proposals[ballot] ?? 0;
    next[at + COUNTER] = Math.min(MOST_TOKEN, Math.max(byte(next, at + COUNTER) + 1, proposal));
    return byte(next, at + COUNTER);
  }

  /** The raise script. */
  #carryOutRaise(next: Uint8Array, ballot: number, node: number): boolean {
    const at = this.#node(node);
    const token = byte(next, this.#ballot(ballot) + TOKEN);
    const below = byte(next, at + COUNTER) < token || this.#options.raise === "careless";
    if (!this.#reaches(next, ballot, node) || byte(next, at + OWNER) !== ballot + 1 || !below) return false;
    next[at + COUNTER] = Math.max(byte(next, at + COUNTER), token);
    return true;
  }

  /** Whether the node that the message was sent to is still alive, and has a vote. */
  #reaches(state: Uint8Array, ballot: number, node: number): boolean {
    return (
      byte(state, this.#message(ballot, node) + SENT_TO) === byte(state, this.#node(node) + LIFE) &&
      this.#votes(state, node)
    );
  }

  #votes(state: Uint8Array, node: number): boolean {
    return byte(state, this.#node(node) + ADMITTED) === 1;
  }

  #countVotes(next: Uint8Array, ballot: number): void {
    let token = 0;
    for (let node = 0; node < this.#options.nodes; node++) {
      token = Math.max(token, byte(next, this.#message(ballot, node) + VOTE));
    }
    next[this.#ballot(ballot) + PHASE] = RAISING;
    next[this.#ballot(ballot) + TOKEN] = token;
    if (this.#options.raise === "none") return;
    for (let node = 0; node < this.#options.nodes; node++) {
      const at = this.#message(ballot, node);
      const vote = byte(next, at + VOTE);
      if (vote > 0 && vote < token) next[at + RAISE] = SENT;
    }
  }

  #accepted(state: Uint8Array, ballot: number): number {
    const token = byte(state, this.#ballot(ballot) + TOKEN);
    let accepted = 0;
    for (let node = 0; node < this.#options.nodes; node++) {
      const at = this.#message(ballot, node);
      const vote = byte(state, at + VOTE);
      if (vote === token || byte(state, at + ACCEPTED) === 1 || (vote > 0 && this.#options.raise === "none"))
        accepted++;
    }
    return accepted;
  }

  #win(next: Uint8Array, ballot: number): string | undefined {
    const at = this.#ballot(ballot);
    const token = byte(next, at + TOKEN);
    const floor = byte(next, at + FLOOR);
    const cell = GRANTED + (token >> 3);
    const bit = 1 << (token & 7);
    const twice = (byte(next, cell) & bit) !== 0;
    next[cell] = byte(next, cell) | bit;
    next[HIGHEST] = Math.max(byte(next, HIGHEST), token);
    this.#end(next, ballot, WON);
    if (twice) return `token ${token} was granted twice`;
    if (token <= floor) return `token ${token} was granted after ${floor}`;
    return undefined;
  }

  /** What the client knew is forgotten; what is under way stays under way. */
  #end(next: Uint8Array, ballot: number, phase: number): void {
    next[this.#ballot(ballot) + PHASE] = phase;
    next[this.#ballot(ballot) + FLOOR] = 0;
    for (let node = 0; node < this.#options.nodes; node++) {
      next[this.#message(ballot, node) + VOTE] = 0;
      next[this.#message(ballot, node) + ACCEPTED] = 0;
    }
  }

  #crash(next: Uint8Array, node: number): void {
    const { readmission, forgetful } = this.#options;
    const at = this.#node(node);
    next[CRASHES] = byte(next, CRASHES) - 1;
    next[at + LIFE] = byte(next, at + LIFE) + 1;
    if (!forgetful) return;
    next[at + OWNER] = 0;
    next[at + COUNTER] = 0;
    next.fill(0, at + AWAITED, at + READ_MAX + 1);
    if (readmission === "at-once") return;
    next[at + ADMITTED] = 0;
    for (let ballot = 0; ballot < this.#options.ballots; ballot++) {
      const phase = byte(next, this.#ballot(ballot) + PHASE);
      if (phase === ASKING || phase === RAISING) next[at + AWAITED] = byte(next, at + AWAITED) | (1 << ballot);
    }
  }

  /** The quarantine is longer than any ballot may take: those that were under way are over when it ends. */
  #waitIsOver(state: Uint8Array, node: number): boolean {
    if (this.#options.readmission === "early") return true;
    const awaited = byte(state, this.#node(node) + AWAITED);
    for (let ballot = 0; ballot < this.#options.ballots; ballot++) {
      const phase = byte(state, this.#ballot(ballot) + PHASE);
      if ((awaited >> ballot) & 1 && (phase === ASKING || phase === RAISING)) return false;
    }
    return true;
  }

  /** Nodes are alike: sorted by what is known of them. */
  canonical(state: Uint8Array): Uint8Array {
    const order = this.#order;
    let moved = false;
    for (let node = 0; node < order.length; node++) {
      let place = node;
      while (place > 0 && this.#compare(state, order[place - 1] as number, node) > 0) {
        order[place] = order[place - 1] as number;
        place--;
        moved = true;
      }
      order[place] = node;
    }
    if (!moved) return state;
    const sorted = this.#sorted;
    sorted.set(state.subarray(0, this.#nodesAt));
    for (let place = 0; place < order.length; place++) {
      const from = this.#node(order[place] as number);
      const to = this.#node(place);
      for (let offset = 0; offset < this.#block; offset++) sorted[to + offset] = byte(state, from + offset);
      const read = byte(state, from + READ);
      if (read === 0) continue;
      sorted[to + READ] = 0;
      for (let other = 0; other < order.length; other++) {
        if ((read >> (order[other] as number)) & 1) sorted[to + READ] = byte(sorted, to + READ) | (1 << other);
      }
    }
    return sorted;
  }

  #compare(state: Uint8Array, left: number, right: number): number {
    const from = this.#node(left);
    const to = this.#node(right);
    for (let at = 0; at < this.#block; at++) {
      if (at === READ) continue; // it names nodes
      const difference = byte(state, from + at) - byte(state, to + at);
      if (difference !== 0) return difference;
    }
    return 0;
  }

  describe(state: Uint8Array): string {
    const nodes = Array.from({ length: this.#options.nodes }, (_, node) => {
      const at = this.#node(node);
      const owner = byte(state, at + OWNER);
      const vote = byte(state, at + ADMITTED) === 1 ? "" : " no vote";
      return `[${owner === 0 ? "free" : `ballot ${owner - 1}`} C=${byte(state, at + COUNTER)}${vote}]`;
    });
    const ballots = Array.from({ length: this.#options.ballots }, (_, ballot) => {
      const at = this.#ballot(ballot);
      return `${PHASES[byte(state, at + PHASE)]} t=${byte(state, at + TOKEN)}`;
    });
    return `${nodes.join(" ")} (${ballots.join(", ")})`;
  }

  #count(state: Uint8Array, ballot: number, field: number): number {
    let count = 0;
    for (let node = 0; node < this.#options.nodes; node++) {
      if (byte(state, this.#message(ballot, node) + field) > 0) count++;
    }
    return count;
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

function code(kind: number | undefined, ballot: number, node: number): number {
  return ((kind as number) << 6) | (ballot << 3) | node;
}

function byte(state: Uint8Array, index: number): number {
  return state[index] as number;
}

function bits(set: number): number {
  let count = 0;
  for (let left = set; left > 0; left >>= 1) count += left & 1;
  return count;
}
