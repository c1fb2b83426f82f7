/** Servers that run, what can go wrong with them, and how to see that nothing was left behind. */
import { mysql, type MysqlOptions } from "../../../src/engines/mysql/index.ts";
import { redis, type RedisOptions } from "../../../src/engines/redis/index.ts";
import { redlock, type RedlockOptions } from "../../../src/engines/redlock/index.ts";
import { sqlite, type SqliteOptions } from "../../../src/engines/sqlite/index.ts";
import { zookeeper, type ZooKeeperOptions } from "../../../src/engines/zookeeper/index.ts";
import type { Clock, Engine, Traits } from "../../../src/index.ts";
import type { Dice } from "./dice.ts";

/** An engine in words that can travel to another process. */
export type EngineSpec =
  | { readonly kind: "sqlite"; readonly options: SqliteOptions }
  | { readonly kind: "redis"; readonly options: RedisOptions }
  | { readonly kind: "redlock"; readonly options: RedlockOptions }
  | { readonly kind: "mysql"; readonly options: MysqlOptions }
  | { readonly kind: "zookeeper"; readonly options: ZooKeeperOptions };

export function engineFor(spec: EngineSpec): Engine {
  if (spec.kind === "sqlite") return sqlite(spec.options);
  if (spec.kind === "redis") return redis(spec.options);
  if (spec.kind === "redlock") return redlock(spec.options);
  if (spec.kind === "mysql") return mysql(spec.options);
  return zookeeper(spec.options);
}

/** Something that can happen to the servers, or to the way to them. */
export interface FaultKind {
  /** In the plural, as a table has it: "servers frozen". */
  readonly name: string;
  /** It breaks an assumption under which exclusion is promised: S1 may then break, S2 and S3 may not. */
  readonly breaksExclusion?: boolean;
  /** Whether it may happen now. Default: always. */
  readonly possible?: () => boolean;
  /** Lets it happen, for about `forMs`, and undoes it. */
  run(forMs: number, dice: Dice): Promise<void>;
}

export interface Deployment {
  /** What a user types: "redis". */
  readonly engine: string;
  /** Which servers, in a few words; and which assumption the faults of this seed break. */
  readonly what: string;
  readonly traits: Traits;
  /** How clients in other processes connect; an engine of one process has `open` instead. */
  readonly spec?: EngineSpec;
  readonly open?: (clock: Clock) => Engine;
  readonly ttlMs: number;
  /** By how much later than its lease a dead holder's place may pass on. */
  readonly roundingMs: number;
  readonly faults: readonly FaultKind[];
  /** Resolves when the servers serve as if nothing had happened. */
  serving(): Promise<void>;
  /** What is left in the engine, or at the servers, when nobody holds or waits: should be nothing. */
  leftovers(): Promise<readonly string[]>;
  /** The same when all clients have closed. */
  remains(): Promise<readonly string[]>;
  stop(): Promise<void>;
}
