/** The zookeeper engine: locks as ephemeral nodes of Apache ZooKeeper 3.6+. See docs/engines/zookeeper.md. */
import { systemClock, type Clock } from "../../engine/clock.ts";
import type { Engine } from "../../engine/engine.ts";
import { ConfigError } from "../../engine/errors.ts";
import { type Acl, type AuthOptions, parseConnectionString, type TlsOptions } from "../../zookeeper/index.ts";
import { ZooKeeperEngine } from "./engine.ts";
import { failureOf } from "./failure.ts";
import { urlOptions } from "./url.ts";

export interface ZooKeeperOptions {
  /** `host:port,host:port`; port 2181 when none is given. */
  servers: string;
  /** Below which path the locks stand. Made if missing. Default: "/holdfast". */
  root?: string | undefined;
  /**
   * True: a queue, first come, first served, all modes. False: everybody races for one node; exclusive locks only, no order.
   * All processes that use a root must agree. Default: true.
   */
  fair?: boolean | undefined;
  /** How long the servers keep a session without a sign of life; the lease of every lock. Default: 30,000 ms; 1,000 … 3,600,000. */
  sessionTimeoutMs?: number | undefined;
  /**
   * How long a server that has lost its leader may go on answering: (syncLimit + 1) × tickTime. The lease is shorter by so
   * much. Default: asked of the servers (0 for a standalone one), 12,000 ms where they do not tell.
   */
  leaderLagMs?: number | undefined;
  /** How long `connect`, or a new session after one that ended, may take. Default: 10,000 ms. */
  connectWithinMs?: number | undefined;
  /** Who we are: `{ scheme: "digest", secret: "user:password" }`. */
  auth?: readonly AuthOptions[] | undefined;
  /** Who may touch our nodes. Default: only who has the same `auth`; everybody when there is none. */
  acl?: Acl | undefined;
  tls?: TlsOptions | undefined;
  /** Default: this machine's clocks. */
  clock?: Clock | undefined;
}

const ROOT = /^(\/|(\/[^/]+)+)$/;

/**
 * Locks in ZooKeeper. Does no I/O yet. Errors: `ConfigError`.
 *
 * Cost: one round trip to lock, one to unlock; one watch event to hand over.
 */
export function zookeeper(options: ZooKeeperOptions): Engine {
  return zookeeperEngine(options);
}

/** The same, with its class. @internal */
export function zookeeperEngine(options: ZooKeeperOptions): ZooKeeperEngine {
  const { servers, root = "/holdfast", fair = true, auth = [], acl, tls } = options;
  try {
    if (parseConnectionString(servers).chroot !== "")
      throw new ConfigError("a path belongs into root, not into servers");
  } catch (error) {
    throw failureOf(error);
  }
  if (!ROOT.test(root)) throw new ConfigError(`root must be a path such as /holdfast, not ${JSON.stringify(root)}`);
  return new ZooKeeperEngine({
    clock: options.clock ?? systemClock,
    servers,
    root,
    fair,
    auth,
    acl,
    tls,
    sessionTimeoutMs: within("sessionTimeoutMs", options.sessionTimeoutMs ?? 30_000, 1_000, 3_600_000),
    leaderLagMs:
      options.leaderLagMs === undefined ? undefined : within("leaderLagMs", options.leaderLagMs, 0, 3_600_000),
    connectWithinMs: within("connectWithinMs", options.connectWithinMs ?? 10_000, 100, 3_600_000),
  });
}

/** The engine for `zookeeper://…`; see `urlOptions`. */
export function fromUrl(url: string): Engine {
  return zookeeper(urlOptions(url));
}

function within(name: string, value: number, least: number, most: number): number {
  if (Number.isFinite(value) && value >= least && value <= most) return value;
  throw new ConfigError(`${name} is a number between ${least} and ${most}`);
}
