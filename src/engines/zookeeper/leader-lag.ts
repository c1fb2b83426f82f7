/**
 * How much earlier than its time-out a session may be over although a server still answers its pings. Asked of the
 * server that we are connected to, where its settings allow that.
 */
import type { Clock } from "../../engine/clock.ts";
import {
  DEFAULT_LEADER_LAG_MS,
  ensembleSettings,
  leaderLagMs,
  parseConnectionString,
  type TlsOptions,
  type ZooKeeper,
} from "../../zookeeper/index.ts";

const ASK_MS = 2_000;

export interface LeaderLag {
  readonly ms: number;
  /** False: nobody answered; another time the server may tell something else. */
  readonly told: boolean;
}

/** 0 for a standalone server; 12,000 ms, right for ZooKeeper's default settings, when the server does not tell. */
export async function askLeaderLag(zk: ZooKeeper, clock: Clock, tls: TlsOptions | undefined): Promise<LeaderLag> {
  const [host] = parseConnectionString(zk.server ?? "").hosts;
  if (host === undefined) return { ms: DEFAULT_LEADER_LAG_MS, told: false };
  try {
    const settings = await ensembleSettings(host, { tls, withinMs: ASK_MS, clock });
    const { serving, standalone, tickTimeMs, syncLimit } = settings;
    if (standalone) return { ms: 0, told: true };
    if (tickTimeMs !== undefined && syncLimit !== undefined)
      return { ms: leaderLagMs(tickTimeMs, syncLimit), told: true };
    return { ms: DEFAULT_LEADER_LAG_MS, told: serving };
  } catch {
    return { ms: DEFAULT_LEADER_LAG_MS, told: false }; // frozen, cut off, or gone again
  }
}
