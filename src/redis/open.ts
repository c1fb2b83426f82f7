/** From a URL, or from a client that the user has, to a `RedisClient`. */
import type { Clock } from "../engine/clock.ts";
import { RedisClient } from "./client.ts";
import type { Source, SourceSettings } from "./connection.ts";
import { RedisConfigError } from "./errors.ts";
import { guardErrors } from "./error-guard.ts";
import { ioredisClusterSource, ioredisSource, type IoredisClient, type IoredisCluster } from "./ioredis.ts";
import { sourceFromUrl } from "./libraries.ts";
import { nodeRedisClusterSource, nodeRedisSentinelSource, nodeRedisSource } from "./node-redis.ts";
import type { NodeRedisClient, NodeRedisCluster, NodeRedisSentinel } from "./node-redis.ts";
import { parseRedisUrl, type RedisUrl } from "./url.ts";

/** A connected client of `ioredis` (5, 6) or `redis` (5, 6): for one server, a Sentinel group or a Cluster. */
export type AnyRedisClient = IoredisClient | IoredisCluster | NodeRedisClient | NodeRedisCluster | NodeRedisSentinel;

export interface OpenOptions {
  readonly clock: Clock;
  readonly commandTimeoutMs: number;
  readonly connectTimeoutMs: number;
}

/**
 * Over a client of the user's: it is used as it is for commands, never closed, its options are left alone; what needs
 * a connection of its own (pub/sub, WAIT) gets a duplicate. Errors: `RedisConfigError` when it is no such client.
 */
export function overClient(client: AnyRedisClient, options: OpenOptions): RedisClient {
  const source = sourceOf(client, settingsOf(options, false));
  return new RedisClient(source, { ...options, secrets: [] }, guardErrors(client));
}

/**
 * From a URL (see url.ts), with connections of our own: made by whichever library is installed, `ioredis` first,
 * unless the URL says. Errors: `RedisConfigError`. Does not connect yet.
 */
export async function fromUrl(url: string | RedisUrl, options: OpenOptions): Promise<RedisClient> {
  const parsed = typeof url === "string" ? parseRedisUrl(url) : url;
  const source = await sourceFromUrl(parsed, settingsOf(options, true), options.clock);
  return new RedisClient(source, { ...options, secrets: secretsOf(parsed) });
}

/** A deployment without a client on top, for those who keep their own connections. */
export interface OpenSource {
  readonly source: Source;
  /** Never to appear in an error. */
  readonly secrets: readonly string[];
  /** Takes our listeners off the client; the source is closed by itself. */
  readonly release: () => void;
}

/** Over a client of the user's, or from a URL: the way to connections of our own. Errors: `RedisConfigError`. No I/O. */
export async function openSource(
  target: string | AnyRedisClient,
  options: Pick<OpenOptions, "clock" | "connectTimeoutMs">,
): Promise<OpenSource> {
  if (typeof target !== "string") {
    return { source: sourceOf(target, settingsOf(options, false)), secrets: [], release: guardErrors(target) };
  }
  const parsed = parseRedisUrl(target);
  const source = await sourceFromUrl(parsed, settingsOf(options, true), options.clock);
  return { source, secrets: secretsOf(parsed), release: () => {} };
}

function secretsOf(url: RedisUrl): string[] {
  const secrets = [url.password, url.sentinelPassword].filter((secret) => secret !== undefined);
  return secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]);
}

function settingsOf(
  { connectTimeoutMs, clock }: Pick<OpenOptions, "clock" | "connectTimeoutMs">,
  ours: boolean,
): SourceSettings {
  return { connectTimeoutMs, ours, random: () => clock.random() };
}

function sourceOf(client: AnyRedisClient, settings: SourceSettings): Source {
  const has = (name: string): boolean => typeof (client as unknown as Record<string, unknown>)[name] === "function";
  if (typeof client !== "object" || client === null) throw new RedisConfigError("this is not a Redis client");
  if (has("call") && has("duplicate") && "isCluster" in client) {
    return client.isCluster
      ? ioredisClusterSource(client as IoredisCluster, settings)
      : ioredisSource(client as IoredisClient, settings);
  }
  if (!has("sendCommand") || !("isOpen" in client)) {
    throw new RedisConfigError("this is not a client of ioredis (5, 6) or redis (5, 6)");
  }
  if (!client.isOpen) throw new RedisConfigError("the redis client is not connected: await client.connect() first");
  if (has("nodeClient")) return nodeRedisClusterSource(client as NodeRedisCluster, settings);
  if (has("acquire") && has("subscribe")) return nodeRedisSentinelSource(client as NodeRedisSentinel);
  if (has("duplicate") && has("subscribe")) return nodeRedisSource(client as NodeRedisClient, settings);
  throw new RedisConfigError("a pool of redis clients cannot subscribe: hand over a client, a cluster or a sentinel");
}
