/**
 * Notices clocks of nodes that jump. Redis ends leases by its wall clock, so a node whose clock steps forward gives its vote
 * away too early. Every reply carries the node's time; what it differs from our own monotonic clock must stay what it was.
 *
 * Two signs: the difference has moved by more than the allowed skew within the last `quarantineMs`, or the node disagrees
 * with the median of all by more than that. Either costs the node its vote until it has been in step
 * for `quarantineMs`. A client that has just started sees only the second sign: this narrows the hole, it does not
 * close it. The token does, at whatever checks it.
 */

/** The node's clock minus ours lies in [low, high]: the reply was written between the sending and the receiving. */
interface Interval {
  readonly low: number;
  readonly high: number;
}

interface Offset extends Interval {
  readonly atMs: number;
}

interface NodeClock {
  /** Two references, so that at least the last `quarantineMs` are always covered by one of them. */
  older: Offset;
  newer: Offset;
  latest: Offset;
  outOfStepAtMs: number;
}

/** Times of a node older than this say nothing about its clock now. */
const FRESH_MS = 5_000;

export interface ClockGuardOptions {
  readonly maxSkewMs: number;
  readonly quarantineMs: number;
}

export class ClockGuard {
  readonly #options: ClockGuardOptions;
  readonly #clocks = new Map<number, NodeClock>();

  constructor(options: ClockGuardOptions) {
    this.#options = options;
  }

  /** A reply of `node` that was asked for at `sentMs`, came at `receivedMs` (our monotonic clock), and says `nodeMs`. */
  sample(node: number, sentMs: number, receivedMs: number, nodeMs: number): void {
    const offset = { low: nodeMs - receivedMs, high: nodeMs - sentMs, atMs: receivedMs };
    const clock = this.#clocks.get(node);
    if (clock === undefined) {
      this.#clocks.set(node, { older: offset, newer: offset, latest: offset, outOfStepAtMs: -Infinity });
    } else {
      this.#compare(clock, offset);
    }
    this.#compareAll(receivedMs);
  }

  /** Whether the vote of `node` counts. Unknown clocks do not. */
  inStep(node: number, nowMs: number): boolean {
    const clock = this.#clocks.get(node);
    return clock !== undefined && nowMs - clock.outOfStepAtMs >= this.#options.quarantineMs;
  }

  /** In how many ms its vote counts again, if nothing else happens; 0 when it counts. */
  quarantineLeftMs(node: number, nowMs: number): number {
    const clock = this.#clocks.get(node);
    if (clock === undefined) return 0;
    return Math.max(0, clock.outOfStepAtMs + this.#options.quarantineMs - nowMs);
  }

  /** By how much the clock of `node` is off from the median of all, in ms; positive: ahead. */
  skewMs(node: number): number {
    const own = this.#clocks.get(node)?.latest;
    return own === undefined ? 0 : fromMedian(middle(own), this.#freshOffsets(own.atMs));
  }

  #compare(clock: NodeClock, offset: Offset): void {
    const { maxSkewMs, quarantineMs } = this.#options;
    if (distance(offset, clock.older) > maxSkewMs || distance(offset, clock.newer) > maxSkewMs) {
      clock.outOfStepAtMs = offset.atMs;
      clock.older = offset;
      clock.newer = offset;
    } else if (offset.atMs - clock.newer.atMs >= quarantineMs) {
      clock.older = clock.newer;
      clock.newer = offset;
    }
    clock.latest = offset;
  }

  /**
   * A new time of one node may put any of them in the wrong. What round trips leave open is held against nobody: neither
   * the node's own nor those of the others, of which the median is made. A reply that was read late says little.
   */
  #compareAll(nowMs: number): void {
    const { maxSkewMs } = this.#options;
    let highestLow = -Infinity;
    let lowestHigh = Infinity;
    for (const { latest } of this.#clocks.values()) {
      if (nowMs - latest.atMs > FRESH_MS) continue;
      highestLow = Math.max(highestLow, latest.low);
      lowestHigh = Math.min(lowestHigh, latest.high);
    }
    // No two are that far apart: none is that far from the median. Nearly always so, and this is asked for every reply.
    if (highestLow - lowestHigh <= maxSkewMs) return;
    const fresh = [...this.#clocks.values()].filter(({ latest }) => nowMs - latest.atMs <= FRESH_MS);
    const medians = medianOffsets(fresh.map(({ latest }) => latest));
    for (const clock of fresh) {
      if (medians.some((median) => distance(clock.latest, median) > maxSkewMs)) clock.outOfStepAtMs = nowMs;
    }
  }

  /** What the nodes whose times are not old differ from our clock, in order. */
  #freshOffsets(nowMs: number): number[] {
    const offsets: number[] = [];
    for (const { latest } of this.#clocks.values()) if (nowMs - latest.atMs <= FRESH_MS) offsets.push(middle(latest));
    return offsets.sort((left, right) => left - right);
  }
}

/** Where the medians lie: the k-th smallest of all lies between the k-th smallest of the lows and that of the highs. */
function medianOffsets(offsets: readonly Interval[]): Interval[] {
  const inOrder = (values: number[]): number[] => values.sort((left, right) => left - right);
  const lows = inOrder(offsets.map(({ low }) => low));
  const highs = inOrder(offsets.map(({ high }) => high));
  return [Math.floor((lows.length - 1) / 2), Math.floor(lows.length / 2)].map((index) => ({
    low: lows[index] ?? -Infinity,
    high: highs[index] ?? Infinity,
  }));
}

/** An even number has two medians. The farther one counts: of two that disagree, neither can be believed. */
function fromMedian(own: number, sorted: readonly number[]): number {
  const lower = own - (sorted[Math.floor((sorted.length - 1) / 2)] ?? own);
  const upper = own - (sorted[Math.floor(sorted.length / 2)] ?? own);
  return Math.abs(lower) > Math.abs(upper) ? lower : upper;
}

function middle({ low, high }: Interval): number {
  return (low + high) / 2;
}

/** How far apart two intervals are; 0 when they share a point. */
function distance(left: Interval, right: Interval): number {
  return Math.max(left.low - right.high, right.low - left.high, 0);
}
