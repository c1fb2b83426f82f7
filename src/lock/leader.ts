/** Seen from outside: who leads now, and who next. */
import type { Clock } from "../engine/clock.ts";
import { ConfigError } from "../engine/errors.ts";
import type { Requests } from "./requests.ts";

export interface Leader {
  /** The number of the term: the fencing token of the leader's lock. Grows from term to term. */
  readonly token: bigint;
  /** What the leader published, or null. */
  readonly value: string | null;
  /** One per `connect`. */
  readonly clientId: string;
  readonly host: string;
  readonly pid: number;
  /** Wall clock of the engine when it was elected, ms since 1970. */
  readonly sinceMs: number;
  /** What is left of its lease, in ms; null where the lease is a session's. */
  readonly remainingMs: number | null;
}

export interface ObserveOptions {
  /** Ends the iteration, without an error. */
  signal: AbortSignal;
  /**
   * How often the engine is asked where it rings no bell for observers, in ms. Default 1,000; 100 to 3,600,000.
   * Cost: one `inspect` each time.
   */
  everyMs?: number | undefined;
}

const DEFAULT_EVERY_MS = 1_000;
const SHORTEST_EVERY_MS = 100;
const LONGEST_EVERY_MS = 3_600_000;
/** With a bell: how often we look all the same, as a bell may be lost. */
const BELL_CHECK_MS = 30_000;

export async function currentLeader(requests: Requests, name: string): Promise<Leader | null> {
  requests.checkOpen();
  const queue = await requests.keeper.during(requests.engine.inspect(name));
  const held = queue.find((entry) => entry.token !== null && entry.mode === "exclusive");
  if (held === undefined || held.token === null) return null;
  const { token, value = null, client, sinceMs, remainingMs } = held;
  return { token, value, ...client, sinceMs, remainingMs };
}

export async function* observeLeader(
  requests: Requests,
  name: string,
  options: ObserveOptions,
): AsyncGenerator<Leader | null, void, undefined> {
  const { signal, everyMs = DEFAULT_EVERY_MS } = options ?? {};
  if (!(signal instanceof AbortSignal)) throw new TypeError("observe needs a signal, to end it");
  if (!(everyMs >= SHORTEST_EVERY_MS && everyMs <= LONGEST_EVERY_MS)) {
    throw new ConfigError(`everyMs must be from ${SHORTEST_EVERY_MS} to ${LONGEST_EVERY_MS}, not ${everyMs}`);
  }
  const { clock, engine, keeper } = requests;
  let change = new AbortController();
  const stopWatching = engine.watch?.(name, () => change.abort());
  let seen: bigint | null | undefined;
  try {
    while (!signal.aborted) {
      // Before asking: what changes after the answer then rings.
      change = new AbortController();
      const leader = await currentLeader(requests, name);
      if (signal.aborted) return;
      if (seen !== (leader?.token ?? null)) {
        seen = leader?.token ?? null;
        yield leader;
      }
      const longestMs = stopWatching === undefined ? everyMs : BELL_CHECK_MS;
      const leaseMs = Math.max(SHORTEST_EVERY_MS, (leader?.remainingMs ?? Infinity) + 1);
      await keeper.during(pause(clock, Math.min(longestMs, leaseMs), signal, change.signal, requests.closing));
    }
  } finally {
    stopWatching?.();
  }
}

/** Resolves after `delayMs`, or as soon as one of `signals` aborts. */
export function pause(clock: Clock, delayMs: number, ...signals: AbortSignal[]): Promise<void> {
  if (signals.some((signal) => signal.aborted)) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      timer.cancel();
      for (const signal of signals) signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = clock.after(delayMs, end);
    for (const signal of signals) signal.addEventListener("abort", end, { once: true });
  });
}
