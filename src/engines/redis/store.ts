/** The lease store in Redis: each verb is one script on the keys of one name. See scripts/queue.lua for what they hold. */
import type { Clock } from "../../engine/clock.ts";
import type { Client, Queue, Traits } from "../../engine/engine.ts";
import { ConfigError } from "../../engine/errors.ts";
import type { Answer, Ask, LeaseStore, Renewal, StoreEvents } from "../../engine/lease-store.ts";
import type { RedisClient, SendOptions, Subscription } from "../../redis/index.ts";
import { toEngineError } from "./failure.ts";
import { keepsSlots, keyOf, nameOf, patternOf } from "./keys.ts";
import { answersOf, describe, limitArgument, ring, toAnswer, toEntry } from "./replies.ts";
import { ScriptRunner, type Replication } from "./script-runner.ts";
import { loadScripts, type Scripts } from "./scripts.ts";
import { survey } from "./survey.ts";
import { TurnBatches, type SharedScript } from "./turn-batches.ts";

export interface RedisStoreOptions extends Replication {
  readonly connect: () => Promise<RedisClient>;
  readonly clock: Clock;
  readonly prefix: string;
  readonly rememberMs: number;
}

interface Opened {
  readonly runner: ScriptRunner;
  readonly scripts: Scripts;
  readonly events: StoreEvents;
  readonly batches: TurnBatches;
  readonly request: SharedScript;
  readonly leave: SharedScript;
}

/** Renewals in one script: enough to be worth it, few enough not to hold up others on the server. */
const LARGEST_SCRIPT = 100;
/** Renewing does not keep the process alive. */
const BACKGROUND: SendOptions = { background: true };
const CHANNEL_BYTES = 9;

export class RedisStore implements LeaseStore {
  readonly traits: Traits;
  readonly #options: RedisStoreOptions;
  /** Where bells for this process ring. */
  readonly #channel: string;
  #redis: RedisClient | undefined;
  #opened: Opened | undefined;
  #subscription: Subscription | undefined;
  #client: Client | undefined;
  #meta = "";

  constructor(options: RedisStoreOptions) {
    this.#options = options;
    const id = Buffer.from(options.clock.randomBytes(CHANNEL_BYTES)).toString("base64url");
    this.#channel = `${options.prefix}bell:${id}`;
    this.traits = {
      engine: "redis",
      fair: true,
      shared: true,
      limits: true,
      steal: true,
      minHold: true,
      lease: "lease",
      bells: "push",
      scope: "network",
      survivesRestart: true,
      survivesFailover: options.minReplicas > 0,
      survivesClockJump: false,
    };
  }

  async open(events: StoreEvents): Promise<void> {
    const { prefix, rememberMs, minReplicas } = this.#options;
    try {
      const redis = await this.#options.connect();
      this.#redis = redis;
      if (!keepsSlots(redis.keyPrefix + prefix)) {
        throw new ConfigError("a { in the key prefix takes the place of our hash tag: use another prefix");
      }
      await redis.connect();
      await survey(redis);
      const scripts = loadScripts({ rememberMs, probe: !redis.cluster });
      // With replicas to wait for, a bell only says that the master has granted: the receiver's renewal confirms it.
      const heeded = minReplicas === 0 ? events : { ...events, granted: (owner: string) => events.check(owner) };
      this.#opened = this.#build(redis, scripts, heeded);
      let first = true;
      this.#subscription = await redis.subscribe(this.#channel, {
        message: (text) => ring(heeded, text),
        subscribed: () => {
          if (!first) events.checkAll();
          first = false;
        },
      });
    } catch (error) {
      await this.close();
      throw toEngineError(error);
    }
  }

  async request(ask: Ask): Promise<Answer> {
    const { name, owner, ttlMs, pendingTtlMs } = ask;
    const { runner, batches, request } = this.#open;
    const { client, value } = ask;
    const { reply, replicated } = await batches.call(
      request,
      value === undefined ? this.#describe(client) : `${this.#channel} ${describe(client, value)}`,
      this.#key(name),
      [
        owner,
        String(ttlMs),
        String(pendingTtlMs),
        String(ask.minHoldMs),
        limitArgument(ask.mode, ask.limit),
        ask.steal ? "s" : ask.wait ? "w" : "n",
      ],
    );
    const answer = toAnswer(reply, ttlMs, pendingTtlMs);
    if (answer.state !== "held" || replicated) return answer;
    await this.withdraw(name, owner);
    throw runner.tooFewReplicas();
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    const answers: Answer[] = [];
    await Promise.all(
      this.#grouped(renewals).map(async (group) => {
        const answered = await this.#renewTogether(group.map(({ renewal }) => renewal));
        for (const [n, { index }] of group.entries())
          answers[index] = answered[n] ?? { state: "gone", reason: "expired" };
      }),
    );
    return answers;
  }

  release(name: string, owner: string): Promise<void> {
    return this.#leave(name, owner, "1");
  }

  withdraw(name: string, owner: string): Promise<void> {
    return this.#leave(name, owner, "0");
  }

  async inspect(name: string): Promise<Queue> {
    const { runner, scripts, events } = this.#inOrder();
    const reply = await runner.run(scripts.inspect, [this.#key(name)], [this.#channel, "q"]);
    const [fields] = answersOf(reply, 1, events) as readonly [readonly unknown[]];
    return Array.from({ length: fields.length / 5 }, (_, n) => toEntry(fields.slice(5 * n, 5 * n + 5).map(String)));
  }

  async *names(start: string): AsyncIterable<string> {
    const { redis } = this.#inOrder().runner;
    const prefix = redis.keyPrefix + this.#options.prefix;
    const seen = new Set<string>(); // SCAN may show a key twice
    try {
      for await (const keys of redis.scan(patternOf(prefix, start))) {
        const names = keys.map((key) => nameOf(prefix, key)).filter((name) => name !== undefined);
        const fresh = [...new Set(names)].filter((name) => !seen.has(name));
        for (const name of fresh) seen.add(name);
        yield* await this.#alive(fresh);
      }
    } catch (error) {
      throw toEngineError(error);
    }
  }

  async evict(name: string, token: bigint): Promise<boolean> {
    const { runner, scripts, events } = this.#inOrder();
    const reply = await runner.run(scripts.evict, [this.#key(name)], [String(token), this.#channel]);
    return Number(answersOf(reply, 1, events)[0]) === 1;
  }

  async close(): Promise<void> {
    this.#subscription?.close();
    await this.#redis?.close();
    this.#redis = undefined;
  }

  #build(redis: RedisClient, scripts: Scripts, events: StoreEvents): Opened {
    const runner = new ScriptRunner(redis, this.#options);
    // In a Cluster one script has the keys of one slot only.
    const slotOf = (key: string): number => (redis.cluster ? redis.slotOf(key) : 0);
    const request: SharedScript = {
      run: (keys, args) => runner.write(scripts.request, keys, args),
      answersOf: (reply, count) => answersOf(reply, count, events),
    };
    const leave: SharedScript = {
      run: (keys, args) => runner.tell(scripts.leave, keys, args),
      answersOf: (reply) => answersOf(reply, 1, events), // one for all
    };
    return { runner, scripts, events, batches: new TurnBatches(slotOf), request, leave };
  }

  get #open(): Opened {
    if (this.#opened === undefined) throw new Error("the store has not been opened");
    return this.#opened;
  }

  /** For a command of its own: it is not to overtake the calls made before it. */
  #inOrder(): Opened {
    this.#open.batches.flush();
    return this.#open;
  }

  #key(name: string): string {
    return keyOf(this.#options.prefix, name);
  }

  /** The last argument of a request; a manager's client is always the same. */
  #describe(client: Client): string {
    if (client !== this.#client) {
      this.#client = client;
      this.#meta = `${this.#channel} ${describe(client)}`;
    }
    return this.#meta;
  }

  async #leave(name: string, owner: string, keepHold: "0" | "1"): Promise<void> {
    const { batches, leave } = this.#open;
    await batches.call(leave, this.#channel, this.#key(name), [owner, keepHold]);
  }

  async #renewTogether(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    const { runner, scripts, events } = this.#inOrder();
    const [first = "", ...keys] = renewals.map(({ name }) => this.#key(name));
    const args = renewals.flatMap(({ owner, ttlMs, pendingTtlMs }) => [owner, String(ttlMs), String(pendingTtlMs)]);
    const written = await runner.write(scripts.renew, [first, ...keys], [this.#channel, ...args], BACKGROUND);
    if (!written.replicated) throw runner.tooFewReplicas();
    const replies = answersOf(written.reply, renewals.length, events);
    return renewals.map(({ ttlMs, pendingTtlMs }, n) => toAnswer(replies[n], ttlMs, pendingTtlMs));
  }

  /** In a Cluster one script has the keys of one slot only. */
  #grouped(renewals: readonly Renewal[]): { readonly renewal: Renewal; readonly index: number }[][] {
    const { redis } = this.#open.runner;
    const bySlot = Map.groupBy(
      renewals.map((renewal, index) => ({ renewal, index })),
      ({ renewal }) => (redis.cluster ? redis.slotOf(this.#key(renewal.name)) : 0),
    );
    return [...bySlot.values()].flatMap((group) => chunks(group, LARGEST_SCRIPT));
  }

  /** Those of the names that have a queue. */
  async #alive(names: readonly string[]): Promise<string[]> {
    const { runner, scripts, events } = this.#open;
    const groups = chunks(names, runner.redis.cluster ? 1 : LARGEST_SCRIPT);
    const counted = await Promise.all(
      groups.map(async (group) => {
        const [first = "", ...keys] = group.map((name) => this.#key(name));
        const reply = await runner.run(scripts.inspect, [first, ...keys], [this.#channel, "n"]);
        return answersOf(reply, group.length, events).map(Number);
      }),
    );
    const counts = counted.flat();
    return names.filter((_, n) => (counts[n] ?? 0) > 0);
  }
}

function chunks<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, n) => list.slice(n * size, (n + 1) * size));
}
