/** The redlock engine: locks that a quorum of independent Redis servers agree on. */
import { systemClock, type Clock } from "../../engine/clock.ts";
import type { Engine } from "../../engine/engine.ts";
import { ConfigError } from "../../engine/errors.ts";
import { RedisConfigError } from "../../redis/errors.ts";
import { openSource, type AnyRedisClient } from "../../redis/open.ts";
import { parseRedisUrl } from "../../redis/url.ts";
import { RedlockEngine } from "./engine.ts";
import type { Server } from "./node.ts";
import { termsOf, type RedlockTermsOptions } from "./terms.ts";

export interface RedlockOptions extends RedlockTermsOptions {
  /** Clients of `ioredis` (5, 6) or `redis` (5, 6), one for each server; used as patterns for connections of our own. */
  clients?: readonly AnyRedisClient[] | undefined;
  /** URLs of the servers, `redis://…` or `rediss://…`, instead of clients. */
  urls?: readonly string[] | undefined;
  /** Default: this machine's clocks. */
  clock?: Clock | undefined;
}

/** How long connecting to a server may take. */
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Locks on 3 to 15 independent Redis servers (an odd number is best), exclusive ones only.
 * Errors: `ConfigError`. Cost: one round trip to lock, to the quorum's slowest server, and one to unlock.
 */
export function redlock(options: RedlockOptions): Engine {
  const { clients, urls, clock = systemClock } = options;
  if ((clients === undefined) === (urls === undefined)) throw new ConfigError("redlock takes either clients or urls");
  const targets = clients ?? urls ?? [];
  const terms = termsOf(targets.length, options);
  return new RedlockEngine(terms, clock, () =>
    Promise.all(targets.map((target, index) => serverOf(target, index, clock))),
  );
}

async function serverOf(target: string | AnyRedisClient, index: number, clock: Clock): Promise<Server> {
  try {
    const opened = await openSource(target, { clock, connectTimeoutMs: CONNECT_TIMEOUT_MS });
    return { label: labelOf(target, index), ...opened };
  } catch (error) {
    if (error instanceof RedisConfigError)
      throw new ConfigError(`node ${index + 1}: ${error.message}`, { cause: error });
    throw error;
  }
}

function labelOf(target: string | AnyRedisClient, index: number): string {
  if (typeof target !== "string") return `node ${index + 1}`;
  const [{ host, port }] = parseRedisUrl(target).hosts;
  return `${host}:${port}`;
}

const NUMBERS = ["maxTtlMs", "nodeTimeoutMs", "maxClockSkewMs", "rememberMs"] as const;
const FLAGS = ["durableNodes", "bootstrap", "restartGuard", "clockGuard"] as const;

/** `redlock:redis://a,redis://b,redis://c`, with options as parameters of any of them: `…?maxTtlMs=30000`. */
export function fromUrl(url: string): Engine {
  const list = url.slice("redlock:".length).split(/,(?=rediss?[:+])/i);
  const urls: string[] = [];
  const parameters = new Map<string, string>();
  try {
    for (const each of list) {
      const parsed = parseRedisUrl(each);
      if (parsed.topology !== "single") throw new ConfigError("the nodes of redlock are single, independent servers");
      for (const [name, value] of parsed.rest) parameters.set(name, value);
      urls.push(each);
    }
  } catch (error) {
    if (error instanceof RedisConfigError) throw new ConfigError(`redlock: ${error.message}`, { cause: error });
    throw error;
  }
  return redlock({ urls, ...optionsOf(parameters) });
}

function optionsOf(parameters: ReadonlyMap<string, string>): RedlockTermsOptions {
  const options: Record<string, number | boolean> = {};
  for (const [name, value] of parameters) {
    if ((NUMBERS as readonly string[]).includes(name)) options[name] = Number(value);
    else if ((FLAGS as readonly string[]).includes(name) && /^(true|false)$/.test(value))
      options[name] = value === "true";
    else throw new ConfigError(`redlock does not know the parameter ${name}, or not with this value`);
  }
  return options;
}
