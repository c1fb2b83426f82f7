/**
 * `holdfast/fence`: guards at the resource that refuse a holder from the past, by its fencing token. A lock alone cannot: its
 * owner may be paused between looking at the lock and writing.
 *
 * Three rules. `enter` comes before the first *read* of what is guarded. Every write carries the token and is checked in the
 * same atomic step. Guards are for exclusive holders.
 */
export { StaleTokenError } from "../engine/errors.ts";
export { FENCING_HEADER, fencingHeaders, httpFence, type HttpFence, type HttpFenceOptions } from "./http.ts";
export type { FenceOptions, Fencing, Mark } from "./mark.ts";
export { memoryFence, type MemoryFence, type MemoryFenceOptions } from "./memory.ts";
export {
  redisFence,
  type IoredisScripting,
  type NodeRedisScripting,
  type RedisFence,
  type RedisFenceOptions,
} from "./redis.ts";
export { sqlFence, type SqlDialect, type SqlFence, type SqlFenceOptions, type SqlQuery } from "./sql.ts";
export {
  zookeeperFence,
  type ZooKeeperEntry,
  type ZooKeeperFence,
  type ZooKeeperFenceOptions,
  type ZooKeeperTransactions,
} from "./zookeeper.ts";
