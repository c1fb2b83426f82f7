/** Spans of time that excuse or delay: a small index over disturbances. */
import type { Disturbance } from "./operation.ts";

export class Timeline {
  /** By their beginning; `latestEndMs[i]` is the latest end among the first i + 1. */
  readonly #spans: readonly Disturbance[];
  readonly #latestEndMs: number[] = [];

  constructor(spans: readonly Disturbance[]) {
    this.#spans = spans.toSorted((left, right) => left.fromMs - right.fromMs);
    let latest = -Infinity;
    for (const { toMs } of this.#spans) this.#latestEndMs.push((latest = Math.max(latest, toMs)));
  }

  /** A span that overlaps [fromMs, toMs]. Cost: logarithmic, and linear in the spans that overlap. */
  overlapping(fromMs: number, toMs: number): Disturbance | undefined {
    for (let index = this.#lastBefore(toMs); index >= 0 && (this.#latestEndMs[index] ?? 0) >= fromMs; index--) {
      const span = this.#spans[index];
      if (span !== undefined && span.toMs >= fromMs) return span;
    }
    return undefined;
  }

  /** The longest stretch of [fromMs, toMs] without any span; undefined when there is none. */
  longestCalm(fromMs: number, toMs: number): { readonly fromMs: number; readonly toMs: number } | undefined {
    let best: { fromMs: number; toMs: number } | undefined;
    const consider = (from: number, to: number): void => {
      if (to > from && (best === undefined || to - from > best.toMs - best.fromMs)) best = { fromMs: from, toMs: to };
    };
    let cursor = fromMs;
    for (const span of this.#spans) {
      if (span.fromMs >= toMs) break;
      if (span.toMs <= cursor) continue;
      consider(cursor, span.fromMs);
      cursor = span.toMs;
    }
    consider(cursor, toMs);
    return best;
  }

  #lastBefore(atMs: number): number {
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#spans[middle]?.fromMs ?? 0) <= atMs) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
