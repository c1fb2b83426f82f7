/**
 * How much earlier than its time-out a session may be over although a server still answers its pings. Asked of the
 * servers where their settings allow that.
 */
import { type Clock } from "../../engine/clock.ts";
import {
  DEFAULT_LEADER_LAG_MS,
  ensembleSettings,
  leaderLagMs,
  parseConnectionString,
  type TlsOptions,
} from "../../zookeeper/index.ts";

const ASK_MS = 2_000;

/** The first of `servers` that answers decides. 12,000 ms, right for ZooKeeper's default settings, when none tells. */
export async function askLeaderLag(servers: string, clock: Clock, tls: TlsOptions | undefined): Promise<number> {
  for (const host of parseConnectionString(servers).hosts) {
    try {
      const settings = await ensembleSettings(host, { tls, withinMs: ASK_MS, clock });
      if (settings.standalone) return 0;
      if (settings.tickTimeMs !== undefined && settings.syncLimit !== undefined) {
        return leaderLagMs(settings.tickTimeMs, settings.syncLimit);
      }
    } catch {
      // Another server may answer. If none does, connecting will say so.
    }
  }
  return DEFAULT_LEADER_LAG_MS;
}
