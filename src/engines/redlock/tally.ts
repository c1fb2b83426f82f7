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

export class Tally {
  readonly #nodes: number;
  readonly #quorum: number;
  /** The counter at which each voter stands. */
  readonly #votes = new Map<number, number>();
  /** Voters that can accept the token no more. */
  readonly #refused = new Set<number>();
  /** Nodes that will not vote in this ballot. */
  readonly #out = new Set<number>();
  readonly #raised = new Set<number>();
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
    return this.#votes.size;
  }

  /** `node` has voted, and its counter stands at `counter` now. */
  voted(node: number, counter: number): void {
    if (this.#votes.has(node) || this.#out.has(node)) return;
    this.#votes.set(node, counter);
    if (this.#token === undefined && this.#votes.size >= this.#quorum) this.#token = Math.max(...this.#votes.values());
  }

  /** `node` will not vote: it is busy, silent, or has no right to. */
  withheld(node: number): void {
    if (!this.#votes.has(node)) this.#out.add(node);
  }

  /** Voters that stand below the token and have not been asked to accept it: ask each once. */
  toRaise(): number[] {
    const token = this.#token;
    if (token === undefined) return [];
    const below = [...this.#votes].filter(([node, counter]) => counter < token && !this.#raised.has(node));
    for (const [node] of below) this.#raised.add(node);
    return below.map(([node]) => node);
  }

  /** `node` raised its counter to the token. */
  accepted(node: number): void {
    if (this.#token !== undefined && this.#votes.has(node) && !this.#refused.has(node)) {
      this.#votes.set(node, this.#token);
    }
  }

  /** `node` did not raise its counter, or did not say so. */
  refused(node: number): void {
    this.#refused.add(node);
  }

  get state(): TallyState {
    const token = this.#token;
    if (token === undefined) return this.#nodes - this.#out.size >= this.#quorum ? "open" : "lost";
    let accepted = 0;
    let possible = this.#nodes - this.#votes.size - this.#out.size;
    for (const [node, counter] of this.#votes) {
      if (counter === token) accepted++;
      else if (counter < token && !this.#refused.has(node)) possible++;
    }
    if (accepted >= this.#quorum) return "won";
    return accepted + possible >= this.#quorum ? "open" : "lost";
  }
}
