/** The redis engine: a fair queue per name in Redis 6.2 or newer, Valkey, Sentinel or Cluster. See docs/engines/redis.md. */
import { systemClock, type Clock } from "../../engine/clock.ts";
import type { Engine } from "../../engine/engine.ts";
import { ConfigError } from "../../engine/errors.ts";
import { LeaseEngine } from "../../engine/lease-engine.ts";
import { fromUrl as clientFromUrl, overClient, parseRedisUrl, type AnyRedisClient } from "../../redis/index.ts";
import { toEngineError } from "./failure.ts";
import { DEFAULT_PREFIX } from "./keys.ts";
import { RedisStore } from "./store.ts";

export type { AnyRedisClient } from "../../redis/index.ts";

export interface RedisOptions {
  /**
   * A connected client of `ioredis` (5, 6) or `redis` (5, 6), for one server, Sentinel or a Cluster. Commands go through
   * it as it is; it is never closed and its options are left alone. Pub/sub and WAIT get connections of our own, made
   * from its settings.
   */
  client?: AnyRedisClient | undefined;
  /** `redis://…`, `rediss://…`, `redis+sentinel://…`, `redis+cluster://…`, instead of a client. */
  url?: string | undefined;
  /** Stands before every key and channel. No spaces. Default: `holdfast:`. */
  prefix?: string | undefined;
  /**
   * A grant or renewal counts only once this many replicas have it: then locks survive a failover to one of them.
   * Costs a round trip to the replicas. Default: 0.
   */
  minReplicas?: number | undefined;
  /** How long to wait for the replicas, ms. Default: 1,000; 10 … 60,000. */
  replicaTimeoutMs?: number | undefined;
  /** How long a name's last token is remembered after its last use, ms. Default: an hour; 100 … 7 days. */
  rememberMs?: number | undefined;
  /** How long one command may take, ms. Default: 5,000; 50 … 60,000. */
  commandTimeoutMs?: number | undefined;
  /** How long connecting may take, ms. Default: 5,000; 50 … 60,000. */
  connectTimeoutMs?: number | undefined;
  /** Default: this machine's clocks. */
  clock?: Clock | undefined;
}

const HOUR_MS = 3_600_000;
const MOST_REPLICAS = 32;

/**
 * Locks in Redis. Does no I/O yet. Errors: `ConfigError`.
 *
 * Cost: one round trip to lock, one to unlock; a hand-off to a waiter is one script and one message.
 */
export function redis(options: RedisOptions): Engine {
  return new LeaseEngine(redisStore(options), options.clock ?? systemClock);
}

/** The store under the engine, for tests that make it misbehave. */
export function redisStore(options: RedisOptions): RedisStore {
  const clock = options.clock ?? systemClock;
  const { client, url } = options;
  const open = {
    clock,
    commandTimeoutMs: within("commandTimeoutMs", options.commandTimeoutMs, 5_000, 50, 60_000),
    connectTimeoutMs: within("connectTimeoutMs", options.connectTimeoutMs, 5_000, 50, 60_000),
  };
  const settings = {
    clock,
    prefix: checkedPrefix(options.prefix ?? DEFAULT_PREFIX),
    minReplicas: within("minReplicas", options.minReplicas, 0, 0, MOST_REPLICAS),
    replicaTimeoutMs: within("replicaTimeoutMs", options.replicaTimeoutMs, 1_000, 10, 60_000),
    rememberMs: within("rememberMs", options.rememberMs, HOUR_MS, 100, 168 * HOUR_MS),
  };
  if (client !== undefined && url === undefined) {
    return new RedisStore({ ...settings, connect: async () => overClient(client, open) });
  }
  if (url === undefined || client !== undefined) throw new ConfigError("redis() takes either a client or a url");
  const parsed = parse(url);
  return new RedisStore({ ...settings, connect: () => clientFromUrl(parsed, open) });
}

const NUMBERS = ["minReplicas", "replicaTimeoutMs", "rememberMs", "commandTimeoutMs", "connectTimeoutMs"] as const;

/**
 * The engine for a Redis URL (src/redis/url.ts has the forms). After the question mark stand the numbers of
 * `RedisOptions` and `prefix`, besides what is the client's: `redis://host/0?minReplicas=1`.
 */
export function fromUrl(url: string): Engine {
  const { rest } = parse(url);
  const options: RedisOptions = { url };
  for (const [name, value] of rest) {
    const number = NUMBERS.find((each) => each === name);
    if (number !== undefined && /^\d+$/.test(value)) options[number] = Number(value);
    else if (name === "prefix") options.prefix = value;
    else throw new ConfigError(`the Redis URL has an option that is unknown or has no number: ${name}`);
  }
  return redis(options);
}

function parse(url: string): ReturnType<typeof parseRedisUrl> {
  try {
    return parseRedisUrl(url);
  } catch (error) {
    throw toEngineError(error);
  }
}

/** Scripts tell a channel from what stands behind it by a space. */
function checkedPrefix(prefix: string): string {
  if (/\s/.test(prefix)) throw new ConfigError("prefix must have no space in it: it is part of keys and channels");
  return prefix;
}

function within(name: string, value: number | undefined, standard: number, least: number, most: number): number {
  const number = value ?? standard;
  if (Number.isFinite(number) && number >= least && number <= most) return number;
  throw new ConfigError(`${name} is a number between ${least} and ${most}`);
}
