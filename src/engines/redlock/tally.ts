/**
 * The arithmetic of one ballot, pure. A request has won with token t when a quorum of nodes has *accepted exactly* t: by
 * answering t to its acquire, or by raising their counter from below to t. Each counter takes each value at most once and
 * two quorums share a node, so a token is never given twice, and a later ballot always ends with a higher one.
 */

export type TallyState =
  /** A quorum may still vote, or still accept. */
  | "open"
  | "won"
  /** A quorum is out of reach. */
  | "lost";

const NONE: readonly number[] = [];

export class Tally {
  readonly #nodes: number;
  readonly #quorum: number;
  /** The counter at which each voter stands, by node. */
  readonly #counters: (number | undefined)[] = [];
  /** Voters that can accept the token no more, by node. */
  readonly #refused: boolean[] = [];
  /** Nodes that will not vote in this ballot, by node. */
  readonly #out: boolean[] = [];
  /** Voters that were asked to accept the token, by node. */
  readonly #raised: boolean[] = [];
  #votes = 0;
  #outs = 0;
  #token: number | undefined;

  constructor(nodes: number, quorum: number) {
    this.#nodes = nodes;
    this.#quorum = quorum;
  }

  /** The highest counter of the first quorum of votes; undefined before there is one. */
  get token(): number | undefined {
    return this.#token;
  }

  get votes(): number {
    return this.#votes;
  }

  /** `node` has voted, and its counter stands at `counter` now. */
  voted(node: number, counter: number): void {
    if (this.#counters[node] !== undefined || this.#out[node] === true) return;
    this.#counters[node] = counter;
    if (++this.#votes !== this.#quorum) return;
    this.#token = 0;
    for (const each of this.#counters) if (each !== undefined && each > this.#token) this.#token = each;
  }

  /** `node` will not vote: it is busy, silent, or has no right to. */
  withheld(node: number): void {
    if (this.#counters[node] !== undefined || this.#out[node] === true) return;
    this.#out[node] = true;
    this.#outs++;
  }

  /** Voters that stand below the token and have not been asked to accept it: ask each once. */
  toRaise(): readonly number[] {
    const token = this.#token;
    if (token === undefined) return NONE;
    let below: number[] | undefined;
    for (let node = 0; node < this.#counters.length; node++) {
      const counter = this.#counters[node];
      if (counter === undefined || counter >= token || this.#raised[node] === true) continue;
      this.#raised[node] = true;
      (below ??= []).push(node);
    }
    return below ?? NONE;
  }

  /** `node` raised its counter to the token. */
  accepted(node: number): void {
    if (this.#token === undefined || this.#counters[node] === undefined || this.#refused[node] === true) return;
    this.#counters[node] = this.#token;
  }

  /** `node` did not raise its counter, or did not say so. */
  refused(node: number): void {
    this.#refused[node] = true;
  }

  get state(): TallyState {
    const token = this.#token;
    if (token === undefined) return this.#nodes - this.#outs >= this.#quorum ? "open" : "lost";
    let accepted = 0;
    let possible = this.#nodes - this.#votes - this.#outs;
    for (let node = 0; node < this.#counters.length; node++) {
      const counter = this.#counters[node];
      if (counter === token) accepted++;
      else if (counter !== undefined && counter < token && this.#refused[node] !== true) possible++;
    }
    if (accepted >= this.#quorum) return "won";
    return accepted + possible >= this.#quorum ? "open" : "lost";
  }
}
