/** The arithmetic of a session's time-outs. Pure. */

/**
 * How long a follower may keep answering after it was cut off from the leader: (syncLimit + 1) × tickTime, with
 * ZooKeeper's defaults of 5 and 2,000 ms.
 */
export const DEFAULT_LEADER_LAG_MS = 12_000;

export function leaderLagMs(tickTimeMs: number, syncLimit: number): number {
  return (syncLimit + 1) * tickTimeMs;
}

const LONGEST_PING_INTERVAL_MS = 10_000;
const MARGIN_SHARE = 0.01;
const MARGIN_MS = 2;

export interface SessionTiming {
  /** Ping when nothing was sent for so long. */
  readonly pingIntervalMs: number;
  /** A connection on which nothing comes for so long is dead. */
  readonly readTimeoutMs: number;
  /** Time for one server to accept the connection *and* to answer for the session: a frozen server accepts too. */
  readonly connectTimeoutMs: number;
  /** How long the session is ours after an answered request was sent, as far as we can know. */
  readonly trustMs: number;
}

/**
 * `sessionTimeoutMs` is what the server agreed to. From it T′ = time-out − `leaderLagMs`: an answered ping says that the
 * *follower* is alive, which may have lost its leader `leaderLagMs` ago, so the leader may end the session that much
 * earlier than the answers suggest. Ping every T′/3, dead link after ⅔ T′, and one third is left to find another server.
 * Source of the shares: Apache ZooKeeper's Java client, which uses the whole time-out.
 */
export function sessionTiming(sessionTimeoutMs: number, lagMs: number, hosts: number): SessionTiming {
  const usable = Math.max(sessionTimeoutMs - lagMs, 1);
  return {
    pingIntervalMs: Math.min(usable / 3, LONGEST_PING_INTERVAL_MS),
    readTimeoutMs: (usable * 2) / 3,
    connectTimeoutMs: usable / hosts,
    trustMs: usable - sessionTimeoutMs * MARGIN_SHARE - MARGIN_MS,
  };
}
