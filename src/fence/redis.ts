/** A guard inside Redis: a check and a command, or a script, in one atomic step. For `ioredis` and `redis` clients. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigError, StaleTokenError } from "../engine/errors.ts";
import { checkEpoch, type FenceOptions, type Fencing, type Mark, markOf } from "./mark.ts";

/** What is needed of an `ioredis` client or cluster. */
export interface IoredisScripting {
  evalsha(sha: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/** What is needed of a `redis` (node-redis) client or cluster. */
export interface NodeRedisScripting {
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

export interface RedisFenceOptions extends FenceOptions {
  /**
   * The key where the fence of a resource is kept. Default `holdfast:fence:{RESOURCE}`. In Cluster it has to be in the slot
   * of the keys that are written with it, so those keep `{RESOURCE}` in their names.
   */
  key?: ((resource: string) => string) | undefined;
  /**
   * Forget a fence when it was not used for so long, in ms. After that a holder from before it is no longer refused.
   * Default: never.
   */
  rememberMs?: number | undefined;
}

export interface RedisFence {
  /** Before the first read. From now on every lower token is refused. Errors: `StaleTokenError`. Cost: one round trip. */
  enter(resource: string, fencing: Fencing): Promise<void>;
  /**
   * One command whose first argument is its only key, for example `["SET", "cart:7", "…", "EX", "60"]`.
   * Errors: `StaleTokenError`, and it does not run. Cost: one round trip.
   */
  write(
    resource: string,
    fencing: Fencing,
    command: readonly [name: string, key: string, ...args: string[]],
  ): Promise<unknown>;
  /**
   * A Lua script of the caller's, with its own `KEYS` and `ARGV`, as the server runs it by itself.
   * Errors: `StaleTokenError`, and it does not run. Cost: one round trip.
   */
  eval(
    resource: string,
    fencing: Fencing,
    script: string,
    keys?: readonly string[],
    args?: readonly string[],
  ): Promise<unknown>;
}

const TEMPLATE = readFileSync(new URL("./redis/guarded.lua", import.meta.url), "utf8");
const NOTHING = "return 1";
const ONE_COMMAND = "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))";
const REFUSED = /^(?:ReplyError: )?STALETOKEN (?<epoch>\d+):(?<token>\d+)/;
/** Scripts whose text is kept, with its digest. */
const MOST_SCRIPTS = 100;

interface Script {
  readonly source: string;
  readonly sha: string;
}

class ScriptedFence implements RedisFence {
  readonly #client: IoredisScripting | NodeRedisScripting;
  readonly #key: (resource: string) => string;
  readonly #rememberMs: string;
  readonly #epoch: number;
  readonly #scripts = new Map<string, Script>();

  constructor(client: IoredisScripting | NodeRedisScripting, options: RedisFenceOptions) {
    const { epoch = 0, rememberMs = 0, key = (resource) => `holdfast:fence:{${resource}}` } = options;
    if (typeof (client as Partial<IoredisScripting> | undefined)?.eval !== "function") {
      throw new ConfigError("redisFence takes a client of ioredis or redis");
    }
    if (!(rememberMs >= 0)) throw new ConfigError(`rememberMs must be a number of milliseconds, not ${rememberMs}`);
    this.#client = client;
    this.#key = key;
    this.#rememberMs = String(Math.ceil(rememberMs));
    this.#epoch = checkEpoch(epoch);
  }

  async enter(resource: string, fencing: Fencing): Promise<void> {
    await this.#run(NOTHING, resource, fencing, [], []);
  }

  async write(
    resource: string,
    fencing: Fencing,
    [name, key, ...args]: readonly [name: string, key: string, ...args: string[]],
  ): Promise<unknown> {
    return await this.#run(ONE_COMMAND, resource, fencing, [key], [name, ...args]);
  }

  async eval(
    resource: string,
    fencing: Fencing,
    script: string,
    keys: readonly string[] = [],
    args: readonly string[] = [],
  ): Promise<unknown> {
    return await this.#run(script, resource, fencing, keys, args);
  }

  async #run(
    body: string,
    resource: string,
    fencing: Fencing,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const mark = markOf(fencing, this.#epoch);
    const all = [this.#key(resource), ...keys];
    try {
      return await this.#send(this.#script(body), all, [
        String(mark.epoch),
        String(mark.token),
        this.#rememberMs,
        ...args,
      ]);
    } catch (error) {
      throw refusal(error, resource, mark) ?? error;
    }
  }

  async #send({ source, sha }: Script, keys: string[], args: string[]): Promise<unknown> {
    const client = this.#client;
    const once = (known: boolean): Promise<unknown> => {
      if (!("evalSha" in client)) {
        const rest = [...keys, ...args];
        return known ? client.evalsha(sha, keys.length, ...rest) : client.eval(source, keys.length, ...rest);
      }
      const options = { keys, arguments: args };
      return known ? client.evalSha(sha, options) : client.eval(source, options);
    };
    try {
      return await once(true);
    } catch (error) {
      // The server has restarted, or never saw it. It was not run, so sending it again is harmless.
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return await once(false);
    }
  }

  #script(body: string): Script {
    const known = this.#scripts.get(body);
    if (known !== undefined) return known;
    const source = TEMPLATE.replace(/^--@body$/m, () => body);
    const script = { source, sha: createHash("sha1").update(source).digest("hex") };
    if (this.#scripts.size >= MOST_SCRIPTS) this.#scripts.clear();
    this.#scripts.set(body, script);
    return script;
  }
}

function refusal(error: unknown, resource: string, mark: Mark): StaleTokenError | undefined {
  const seen = error instanceof Error ? REFUSED.exec(error.message)?.groups?.["token"] : undefined;
  return seen === undefined ? undefined : new StaleTokenError(resource, mark.token, BigInt(seen), { cause: error });
}

/**
 * A guard that lives in the Redis which it guards. It has to keep what it acknowledged: a server that was restarted empty, or
 * evicted the fence's key, refuses nobody.
 */
export function redisFence(client: IoredisScripting | NodeRedisScripting, options: RedisFenceOptions = {}): RedisFence {
  return new ScriptedFence(client, options);
}
