/**
 * How much earlier than its time-out a session may be over although a server still answers its pings. Asked of the
 * server that we are connected to, where its settings allow that.
 */
import { type Clock } from "../../engine/clock.ts";
import {
  DEFAULT_LEADER_LAG_MS,
  ensembleSettings,
  leaderLagMs,
  parseConnectionString,
  type TlsOptions,
  type ZooKeeper,
} from "../../zookeeper/index.ts";

const ASK_MS = 2_000;

/** 0 for a standalone server; 12,000 ms, right for ZooKeeper's default settings, when the server does not tell. */
export async function askLeaderLag(zk: ZooKeeper, clock: Clock, tls: TlsOptions | undefined): Promise<number> {
  try {
    const [host] = parseConnectionString(zk.server ?? "").hosts;
    if (host === undefined) return DEFAULT_LEADER_LAG_MS;
    const { standalone, tickTimeMs, syncLimit } = await ensembleSettings(host, { tls, withinMs: ASK_MS, clock });
    if (standalone) return 0;
    if (tickTimeMs !== undefined && syncLimit !== undefined) return leaderLagMs(tickTimeMs, syncLimit);
  } catch {
    // It does not tell, or is gone again.
  }
  return DEFAULT_LEADER_LAG_MS;
}
