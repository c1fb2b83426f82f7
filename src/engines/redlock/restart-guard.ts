/**
 * Which nodes may vote, pure. A server that was restarted may have forgotten votes and counters; the articles let an
 * operator restart it late by hand. Here its new incarnation has no vote until every lease that its former one
 * may have voted for is over, and its counters have been raised to what a quorum of the others has seen.
 * See docs/engines/redlock.md and docs/decisions/ for the first use of an empty deployment.
 */
import type { NodeRecord } from "./node.ts";
import { quarantineMs, type Terms } from "./terms.ts";

/** A node as it was last seen. */
export interface NodeView {
  readonly connected: boolean;
  readonly run: string;
  readonly record: NodeRecord;
  readonly seenAtMs: number;
}

export type Step =
  /** Its data is as acknowledged: it keeps its vote. */
  | { readonly kind: "admit-durable"; readonly nodes: readonly number[] }
  /** These are to be taken back, each once its own wait is over, with the counters of a quorum of `sources`. */
  | { readonly kind: "readmit"; readonly nodes: readonly number[]; readonly sources: readonly number[] }
  /** All nodes start together, once `waitMs` have passed since the last of them was seen first. */
  | { readonly kind: "bootstrap"; readonly nodes: readonly number[]; readonly waitMs: number }
  /** Nothing can be done from here. */
  | { readonly kind: "stuck"; readonly why: string }
  | { readonly kind: "none" };

/** What is to be done about nodes without a vote, next. */
export function nextStep(views: readonly NodeView[], terms: Terms): Step {
  const foreign = indices(views, (view) => view.connected && view.record.run !== view.run);
  if (foreign.length === 0) return { kind: "none" };
  const durable = foreign.filter((node) => terms.durableNodes && views[node]?.record.run !== "");
  if (durable.length > 0) return { kind: "admit-durable", nodes: durable };
  const admitted = indices(views, (view) => view.connected && view.record.run === view.run);
  if (admitted.length >= terms.quorum) return { kind: "readmit", nodes: foreign, sources: admitted };
  return begin(views, foreign, terms);
}

/** Fewer than a quorum are admitted: nobody can have been granted anything since, and nobody can renew. */
function begin(views: readonly NodeView[], foreign: readonly number[], terms: Terms): Step {
  const away = views.length - indices(views, (view) => view.connected).length;
  if (away > 0) {
    return { kind: "stuck", why: `fewer than ${terms.quorum} nodes have a vote, and ${away} cannot be reached` };
  }
  const remembering = indices(views, (view) => view.record.high > 0).length;
  if (remembering === 0) {
    return {
      kind: "bootstrap",
      nodes: foreign,
      waitMs: terms.bootstrap || terms.durableNodes ? 0 : quarantineMs(terms),
    };
  }
  if (terms.bootstrap) return { kind: "bootstrap", nodes: foreign, waitMs: quarantineMs(terms) };
  const why =
    `${foreign.length} of ${views.length} nodes were restarted at once and may have lost locks and counters. ` +
    "If that is understood, start again with bootstrap: true";
  return { kind: "stuck", why };
}

function indices(views: readonly NodeView[], wanted: (view: NodeView) => boolean): number[] {
  return views.flatMap((view, index) => (wanted(view) ? [index] : []));
}
