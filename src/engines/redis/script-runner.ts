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
    return this.redis.run(script, keys, args, options).catch(this.#fail);
  }

  /** The same where the master's word is enough. */
  tell(script: Script, keys: Keys, args: Arguments, options?: SendOptions): Promise<Written> {
    return this.redis.run(script, keys, args, options).then(masterHasIt, this.#fail);
  }

  /** For what has to outlive the master. */
  write(script: Script, keys: Keys, args: Arguments, options?: SendOptions): Promise<Written> {
    const { minReplicas, replicaTimeoutMs } = this.#replication;
    if (minReplicas === 0) return this.tell(script, keys, args, options);
    const wait = { replicas: minReplicas, waitMs: replicaTimeoutMs };
    return this.redis
      .runReplicated(script, keys, args, wait)
      .then(({ reply, replicas }) => ({ reply, replicated: replicas >= minReplicas }), this.#fail);
  }

  tooFewReplicas(): EngineUnavailableError {
    const { minReplicas, replicaTimeoutMs } = this.#replication;
    return new EngineUnavailableError(
      `Redis: fewer than ${minReplicas} replicas confirmed the write within ${replicaTimeoutMs} ms`,
    );
  }

  readonly #fail = (error: unknown): never => {
    if (isDemoted(error)) this.redis.reset("this server is not the master any more");
    throw toEngineError(error);
  };
}

function masterHasIt(reply: unknown): Written {
  return { reply, replicated: true };
}
