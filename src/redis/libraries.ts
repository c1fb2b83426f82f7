/** Connections of our own from a URL. The libraries are optional: loaded here, when a URL asks for one. */
import { readFileSync } from "node:fs";
import type { Clock } from "../engine/clock.ts";
import type { Source, SourceSettings } from "./connection.ts";
import { RedisConfigError, RedisOutcomeUnknownError } from "./errors.ts";
import {
  ioredisClusterSource,
  ioredisSource,
  keepSocketAlive,
  type IoredisClient,
  type IoredisCluster,
} from "./ioredis.ts";
import {
  keepNodesAlive,
  nodeRedisClusterSource,
  nodeRedisSource,
  type NodeRedisClient,
  type NodeRedisCluster,
} from "./node-redis.ts";
import type { HostPort, RedisUrl, TlsSettings } from "./url.ts";

interface IoredisModule {
  readonly default: {
    new (options: object): IoredisClient;
    readonly Cluster: new (nodes: readonly HostPort[], options: object) => IoredisCluster;
  };
}

interface NodeRedisModule {
  createClient(options: object): NodeRedisClient;
  createCluster(options: object): NodeRedisCluster;
}

/** Errors: `RedisConfigError` when the library is not installed. */
export async function sourceFromUrl(url: RedisUrl, settings: SourceSettings, clock: Clock): Promise<Source> {
  if (url.tls?.verify === false) {
    const code = "HOLDFAST_INSECURE_TLS";
    process.emitWarning("insecureTls=true: the certificate of the Redis server is not verified", { code });
  }
  if (url.library !== "redis") {
    const ioredis = await load<IoredisModule>("ioredis");
    if (ioredis !== undefined) return fromIoredis(ioredis, url, settings);
    if (url.library === "ioredis") throw new RedisConfigError("ioredis is not installed: npm install ioredis");
  }
  const redis = await load<NodeRedisModule>("redis");
  if (redis === undefined) {
    throw new RedisConfigError("a Redis client is needed: npm install ioredis (or: npm install redis)");
  }
  return fromNodeRedis(redis, url, settings, clock);
}

/** The name is a variable so that neither the compiler nor a bundler insists on the library. */
async function load<T>(name: string): Promise<T | undefined> {
  try {
    return (await import(name)) as T;
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

function fromIoredis({ default: Redis }: IoredisModule, url: RedisUrl, settings: SourceSettings): Source {
  const tls = tlsOptions(url.tls);
  const options = {
    ...defined({ username: url.username, password: url.password, tls }),
    lazyConnect: true,
    disableClientInfo: true,
  };
  if (url.topology === "cluster") {
    const cluster = new Redis.Cluster(url.hosts, {
      lazyConnect: true,
      redisOptions: { ...options, connectTimeout: settings.connectTimeoutMs },
      // The timer of the regular refresh would keep the process alive; a moved slot refreshes the map anyway.
      slotsRefreshInterval: 0,
    });
    cluster.on("error", () => {}); // every command that fails says so itself
    unrefNodes(cluster);
    return ioredisClusterSource(cluster, settings);
  }
  const server =
    url.topology === "single"
      ? url.hosts[0]
      : {
          sentinels: url.hosts,
          name: url.masterName,
          ...defined({ sentinelUsername: url.sentinelUsername, sentinelPassword: url.sentinelPassword }),
          ...defined({ sentinelTLS: tls, enableTLSForSentinelMode: tls === undefined ? undefined : true }),
        };
  return ioredisSource(new Redis({ ...options, ...server, db: url.database }), settings);
}

/** The sockets of a Cluster client of ours do not keep the process alive. */
function unrefNodes(cluster: IoredisCluster): void {
  cluster.on("+node", (added) => {
    const node = added as IoredisClient;
    node.on("error", () => {});
    node.on("connect", () => keepSocketAlive(node, false));
  });
}

const patterns = new WeakMap<NodeRedisModule, NodeRedisClient>();

/**
 * A client that does not connect yet. `createClient` makes a class with hundreds of methods, which takes some 30 ms, whenever its
 * options differ from those of the last one; duplicates of one client share its class.
 */
function newNodeRedis(library: NodeRedisModule, options: object): NodeRedisClient {
  let pattern = patterns.get(library);
  if (pattern === undefined) {
    pattern = library.createClient({});
    patterns.set(library, pattern);
  }
  return pattern.duplicate(options);
}

function fromNodeRedis(library: NodeRedisModule, url: RedisUrl, settings: SourceSettings, clock: Clock): Source {
  const { connectTimeoutMs } = settings;
  const socket = {
    connectTimeout: connectTimeoutMs,
    ...(url.tls === undefined ? {} : { tls: true, ...tlsOptions(url.tls) }),
  };
  const login = defined({ username: url.username, password: url.password });
  if (url.topology === "cluster") {
    const rootNodes = url.hosts.map(({ host, port }) => ({ socket: { ...socket, host, port } }));
    const cluster = library.createCluster({ rootNodes, defaults: { ...login, socket } });
    cluster.on("error", () => {}); // every command that fails says so itself
    cluster.on("node-ready", () => keepNodesAlive(cluster, false));
    return nodeRedisClusterSource(cluster, settings);
  }
  const clientFor = ({ host, port }: HostPort) =>
    newNodeRedis(library, { ...login, database: url.database, socket: { ...socket, host, port } });
  const pattern = clientFor(url.hosts[0]);
  if (url.topology === "single") return nodeRedisSource(pattern, settings);
  const sentinelLogin = defined({ username: url.sentinelUsername, password: url.sentinelPassword });
  const sentinelFor = ({ host, port }: HostPort) =>
    newNodeRedis(library, { ...sentinelLogin, socket: { ...socket, host, port, reconnectStrategy: false } });
  const findMaster = async () => clientFor(await masterOf(url, sentinelFor, connectTimeoutMs, clock));
  return nodeRedisSource(pattern, settings, findMaster);
}

/** Asks the Sentinels in order. Source: the guidelines for Sentinel clients of the Redis documentation. */
async function masterOf(
  url: RedisUrl,
  sentinelFor: (address: HostPort) => NodeRedisClient,
  timeoutMs: number,
  clock: Clock,
): Promise<HostPort> {
  let last: unknown;
  for (const address of url.hosts) {
    const sentinel = sentinelFor(address);
    sentinel.on("error", () => {});
    sentinel.unref();
    // A frozen Sentinel accepts the connection and never answers.
    const timer = clock.after(timeoutMs, () => void (sentinel.isOpen && sentinel.destroy()));
    try {
      await sentinel.connect();
      const reply = await sentinel.sendCommand(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", url.masterName]);
      if (Array.isArray(reply)) return { host: String(reply[0]), port: Number(reply[1]) };
      last = new RedisConfigError(`the Sentinels do not know a master called ${url.masterName}`);
    } catch (error) {
      last = error;
    } finally {
      timer.cancel();
      if (sentinel.isOpen) sentinel.destroy();
    }
  }
  throw last instanceof RedisConfigError ? last : new RedisOutcomeUnknownError(`no Sentinel answers: ${String(last)}`);
}

function tlsOptions(tls: TlsSettings | undefined): object | undefined {
  if (tls === undefined) return undefined;
  return { rejectUnauthorized: tls.verify, ...(tls.ca === undefined ? {} : { ca: readAuthority(tls.ca) }) };
}

function readAuthority(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new RedisConfigError(`the authority named by ca= cannot be read: ${(error as Error).message}`);
  }
}

/** Without the entries that are undefined: the libraries take the presence of an option for a choice. */
function defined(entries: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));
}
