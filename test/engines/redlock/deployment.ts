/** Five (or three) real Redis servers, and clients of redlock on them, for the tests beside this file. */
import { redlock, type RedlockOptions } from "../../../src/engines/redlock/index.ts";
import { connect, type LockManager } from "../../../src/index.ts";
import { startRedis, type RedisServer } from "../../../servers/redis.ts";

/** Short, so that a quarantine can be waited for; and patient, for a busy machine. */
export const TERMS = { maxTtlMs: 4_000, nodeTimeoutMs: 400, maxClockSkewMs: 300 };

export interface Deployment {
  readonly servers: readonly RedisServer[];
  /** A client of its own. Closed by `stop`. */
  connect(options?: Partial<RedlockOptions>, ttlMs?: number): Promise<LockManager>;
  /** A client that can reach only the servers with these numbers: the others refuse its connections. */
  connectTo(numbers: readonly number[], options?: Partial<RedlockOptions>): Promise<LockManager>;
  stop(): Promise<void>;
}

export async function startDeployment(
  count: number,
  options: { readonly clock?: boolean; readonly terms?: Partial<RedlockOptions> } = {},
): Promise<Deployment> {
  const servers = await Promise.all(Array.from({ length: count }, () => startRedis({ clock: options.clock })));
  const managers: LockManager[] = [];
  const terms = { ...TERMS, ...options.terms };
  const open = async (urls: readonly string[], more: Partial<RedlockOptions> = {}, ttlMs = 3_000) => {
    const locks = await connect(redlock({ urls, ...terms, ...more }), { ttlMs });
    managers.push(locks);
    return locks;
  };
  const all = servers.map(({ url }) => url);
  if (terms.restartGuard !== false) await (await open(all, { bootstrap: true })).close();
  return {
    servers,
    connect: (more, ttlMs) => open(all, more, ttlMs),
    connectTo: (numbers, more) =>
      // Port 1 is nobody's.
      open(
        all.map((url, number) => (numbers.includes(number) ? url : `redis://127.0.0.1:1/${number}`)),
        more,
      ),
    stop: async () => {
      for (const server of servers) server.thaw();
      await Promise.all(managers.map((locks) => locks.close()));
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
