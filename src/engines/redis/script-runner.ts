/** Runs the scripts: with errors of the engine, and where it is asked for only counting what replicas have. */
import { EngineUnavailableError } from "../../engine/errors.ts";
import type { RedisClient, Script, SendOptions } from "../../redis/index.ts";
import { isDemoted, toEngineError } from "./failure.ts";

export interface Replication {
  /** 0: the master's word is enough. */
  readonly minReplicas: number;
  /** How long to wait for them. */
  readonly replicaTimeoutMs: number;
}

export interface Written {
  readonly reply: unknown;
  /** Whether as many replicas have it as have to. */
  readonly replicated: boolean;
}

type Keys = readonly [string, ...string[]];
type Arguments = readonly [string, ...string[]];

export class ScriptRunner {
  readonly redis: RedisClient;
  readonly #replication: Replication;

  constructor(redis: RedisClient, replication: Replication) {
    this.redis = redis;
    this.#replication = replication;
  }

  /** Rejects with `EngineUnavailableError` or `ConfigError`. */
  run(script: Script, keys: Keys, args: Arguments, options?: SendOptions): Promise<unknown> {
    return this.redis.run(script, keys, args, options).catch((error: unknown) => this.#fail(error));
  }

  /** The same for what has to outlive the master. */
  async write(script: Script, keys: Keys, args: Arguments, options?: SendOptions): Promise<Written> {
    const { minReplicas, replicaTimeoutMs } = this.#replication;
    if (minReplicas === 0) return { reply: await this.run(script, keys, args, options), replicated: true };
    const wait = { replicas: minReplicas, waitMs: replicaTimeoutMs };
    const { reply, replicas } = await this.redis
      .runReplicated(script, keys, args, wait)
      .catch((error: unknown) => this.#fail(error));
    return { reply, replicated: replicas >= minReplicas };
  }

  tooFewReplicas(): EngineUnavailableError {
    const { minReplicas, replicaTimeoutMs } = this.#replication;
    return new EngineUnavailableError(
      `Redis: fewer than ${minReplicas} replicas confirmed the write within ${replicaTimeoutMs} ms`,
    );
  }

  #fail(error: unknown): never {
    if (isDemoted(error)) this.redis.reset("this server is not the master any more");
    throw toEngineError(error);
  }
}
