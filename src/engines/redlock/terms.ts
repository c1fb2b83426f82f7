/** What all clients of one deployment have to agree on, and the spans of time that follow from it. */
import { ConfigError } from "../../engine/errors.ts";

export interface RedlockTermsOptions {
  /**
   * The longest lease that any client may ask for, in ms. A node that has lost its memory stays without a vote for a
   * little longer than this. Stands on the nodes: a client with another value is refused. Default 60,000.
   */
  maxTtlMs?: number | undefined;
  /** How long a round waits for one node, in ms. More for far nodes. Default 50. */
  nodeTimeoutMs?: number | undefined;
  /**
   * A node whose clock is off from the others, or has moved, by more than this has no vote. Every lease lasts this
   * much longer on the nodes, so a smaller step does no harm. In ms; default 250.
   */
  maxClockSkewMs?: number | undefined;
  /** How long a name is remembered after its last use, in ms. Default an hour. */
  rememberMs?: number | undefined;
  /**
   * The nodes keep everything they have acknowledged (`appendonly yes`, `appendfsync always`, no backups restored): a
   * node that comes back with its data votes again at once. Default false.
   */
  durableNodes?: boolean | undefined;
  /**
   * Nobody holds a lock of this deployment now: nodes that remember nothing are taken into service at once, and a
   * majority that has lost its memory is taken back after the wait. For the first use, and for tests. Default false.
   */
  bootstrap?: boolean | undefined;
  /** False: nodes vote right after an empty restart, as in the articles. Only to show what goes wrong. Default true. */
  restartGuard?: boolean | undefined;
  /** False: nodes vote whatever their clocks do, as in the articles. Only to show what goes wrong. Default true. */
  clockGuard?: boolean | undefined;
}

export interface Terms {
  readonly nodes: number;
  readonly quorum: number;
  readonly maxTtlMs: number;
  readonly nodeTimeoutMs: number;
  readonly maxClockSkewMs: number;
  readonly rememberMs: number;
  readonly durableNodes: boolean;
  readonly bootstrap: boolean;
  readonly restartGuard: boolean;
  readonly clockGuard: boolean;
}

/** By how much two clocks may run at different rates. */
const DRIFT = 0.01;
const MARGIN_MS = 10;
const FEWEST_NODES = 3;
const MOST_NODES = 15;

/** The smallest number of nodes of which two choices always share one. Right for even numbers too. */
export function quorumOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/**
 * The lease that a node keeps for a holder who counts on `ttlMs`: longer by twice the drift (our clock slow, the node's
 * fast) and by the clock step that goes unnoticed. So the holder's deadline passes first, on every node.
 */
export function nodeLeaseMs(ttlMs: number, terms: Terms): number {
  return Math.ceil(ttlMs * (1 + 2 * DRIFT)) + terms.maxClockSkewMs;
}

/** What the holder counts on still, of a lease that has `leftMs` left on a node. */
export function holderLeftMs(leftMs: number, terms: Terms): number {
  return Math.max(0, (leftMs - terms.maxClockSkewMs) / (1 + 2 * DRIFT));
}

/**
 * How long a node that may have forgotten a vote has none, on the monotonic clock of whoever saw it come back: no
 * holder counts on a lease for longer. Also how long a clock has to be in step after a jump.
 */
export function quarantineMs(terms: Terms): number {
  return Math.ceil(terms.maxTtlMs * (1 + 2 * DRIFT)) + MARGIN_MS;
}

/** Fills in defaults and checks. Throws `ConfigError`. */
export function termsOf(nodes: number, given: RedlockTermsOptions): Terms {
  if (nodes < FEWEST_NODES || nodes > MOST_NODES) {
    throw new ConfigError(
      `redlock needs ${FEWEST_NODES} to ${MOST_NODES} independent Redis servers, not ${nodes}; for one server use the redis engine`,
    );
  }
  return {
    nodes,
    quorum: quorumOf(nodes),
    maxTtlMs: span("maxTtlMs", given.maxTtlMs ?? 60_000, 100, 86_400_000),
    nodeTimeoutMs: span("nodeTimeoutMs", given.nodeTimeoutMs ?? 50, 1, 60_000),
    maxClockSkewMs: span("maxClockSkewMs", given.maxClockSkewMs ?? 250, 1, 60_000),
    rememberMs: span("rememberMs", given.rememberMs ?? 3_600_000, 1_000, 30 * 86_400_000),
    durableNodes: given.durableNodes ?? false,
    bootstrap: given.bootstrap ?? false,
    restartGuard: given.restartGuard ?? true,
    clockGuard: given.clockGuard ?? true,
  };
}

function span(option: string, value: unknown, least: number, most: number): number {
  if (typeof value !== "number" || !(value >= least && value <= most)) {
    throw new ConfigError(`${option} must be a number of milliseconds from ${least} to ${most}, not ${String(value)}`);
  }
  return Math.ceil(value);
}
