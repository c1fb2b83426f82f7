/** Redis as the engines see it. Knows nothing of locks. */
export { RedisClient, type ClientOptions, type SendOptions, type Subscriber, type Subscription } from "./client.ts";
export { RedisConfigError, RedisOutcomeUnknownError, RedisReplyError } from "./errors.ts";
export { fromUrl, overClient, type AnyRedisClient, type OpenOptions } from "./open.ts";
export { type Replicated } from "./replicator.ts";
export { createScript, type Script } from "./script.ts";
export { parseRedisUrl, type RedisUrl } from "./url.ts";
