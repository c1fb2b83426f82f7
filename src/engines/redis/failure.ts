/** Errors of Redis as errors of an engine. */
import { ConfigError, EngineUnavailableError, HoldfastError } from "../../engine/errors.ts";
import { RedisConfigError, RedisReplyError } from "../../redis/index.ts";

/** Answers that trying again does not mend. */
const FOR_THE_OPERATOR: Record<string, string> = {
  NOAUTH: "the Redis server wants a password",
  WRONGPASS: "the Redis server refuses this user and password",
  NOPERM: "the Redis user may not do what the redis engine needs (docs/engines/redis.md has the least privileges)",
  CROSSSLOT: "the keys of one lock lie in several slots: is there a { in the key prefix?",
};

export function toEngineError(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof RedisConfigError) return new ConfigError(message);
  if (error instanceof RedisReplyError) {
    const advice = FOR_THE_OPERATOR[error.code];
    if (advice !== undefined) return new ConfigError(`${advice}: ${message}`);
  }
  return new EngineUnavailableError(`Redis: ${message}`, { cause: error });
}

/** The server that we talk to is not the master any more. */
export function isDemoted(error: unknown): boolean {
  return error instanceof RedisReplyError && (error.code === "READONLY" || error.code === "UNBLOCKED");
}
