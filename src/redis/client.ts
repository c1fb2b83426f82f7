/** Commands and scripts with time-outs, pub/sub with re-subscription, on any deployment and either library. */
import type { Clock } from "../engine/clock.ts";
import type { Command, Connection, Source } from "./connection.ts";
import { redact, RedisOutcomeUnknownError, RedisReplyError, translate } from "./errors.ts";
import { InFlight } from "./in-flight.ts";
import { Link } from "./link.ts";
import { Replicator, type Replicated } from "./replicator.ts";
import type { Script } from "./script.ts";
import { hashSlot } from "./slot.ts";

export interface ClientOptions {
  readonly clock: Clock;
  /** A command without an answer after this long has an unknown outcome. */
  readonly commandTimeoutMs: number;
  /** A connection that is not ready after this long has failed. */
  readonly connectTimeoutMs: number;
  /** Never to appear in an error. */
  readonly secrets: readonly string[];
}

export interface SendOptions {
  /** Finds the node in a Cluster. */
  readonly key?: string;
  /** Default: the client's. */
  readonly timeoutMs?: number;
  /** True: the wait for its answer does not keep the process alive. */
  readonly background?: boolean;
}

export interface Subscriber {
  message(text: string): void;
  /** The subscription stands, for the first time or again: messages may have been lost before. */
  subscribed(): void;
}

export interface Subscription {
  close(): void;
}

const FOREGROUND: SendOptions = {};

export class RedisClient {
  readonly #source: Source;
  readonly #options: ClientOptions;
  readonly #main: Link;
  readonly #subscriptions = new Set<Link>();
  readonly #inFlight: InFlight;
  readonly #replicators = new Map<string, Replicator>();
  readonly #reloads = new Map<string, Promise<unknown>>();
  readonly #release: () => void;
  #foreground = 0;
  #closed = false;

  /** `release` is called at `close()`. */
  constructor(source: Source, options: ClientOptions, release: () => void = () => {}) {
    this.#source = source;
    this.#options = options;
    this.#inFlight = new InFlight(options.clock);
    this.#main = this.#link(() => source.open());
    this.#release = release;
  }

  get library(): "ioredis" | "redis" {
    return this.#source.library;
  }

  get cluster(): boolean {
    return this.#source.cluster;
  }

  /** What stands before every key on the server, besides what the caller puts there. */
  get keyPrefix(): string {
    return this.#source.keyPrefix;
  }

  /** The hash slot of a key, its prefix included. */
  slotOf(key: string): number {
    return hashSlot(this.#source.keyPrefix + key);
  }

  /** Connects. Rejects after one failed attempt. Needed before anything else. */
  async connect(): Promise<void> {
    const stay = this.#options.clock.stayAlive();
    try {
      await this.#main.open();
      await this.command(["ping"], { timeoutMs: this.#options.connectTimeoutMs });
    } catch (error) {
      throw translate(error, this.#options.secrets);
    } finally {
      stay.cancel();
    }
  }

  /** One command; rejects with `RedisReplyError` or `RedisOutcomeUnknownError`. Keys in it are the caller's to prefix. */
  command(command: Command, options: SendOptions = FOREGROUND): Promise<unknown> {
    return this.#send(command, options);
  }

  /**
   * Runs a script by its SHA-1; when the server does not know it (a restart, a failover, SCRIPT FLUSH) it is sent once
   * in full. All keys must share a slot. One round trip.
   */
  run(script: Script, keys: readonly [string, ...string[]], args: Command, options?: SendOptions): Promise<unknown> {
    const first = this.#source.written(keys[0]);
    const command: [string, ...string[]] = ["evalsha", script.sha, String(keys.length), first];
    for (let n = 1; n < keys.length; n++) command.push(this.#source.written(keys[n] ?? ""));
    command.push(...args);
    const sent = { ...options, key: first };
    return this.#send(command, sent, () => this.#reload(script, command.slice(2), sent));
  }

  /**
   * Runs a script and then asks how many replicas have its effects, both on one connection of our own, so that the
   * count means something. Many at once share one WAIT. Waits at most `waitMs` for the replicas.
   */
  runReplicated(
    script: Script,
    keys: readonly [string, ...string[]],
    args: Command,
    wait: { readonly replicas: number; readonly waitMs: number },
  ): Promise<Replicated> {
    const written = keys.map((key) => this.#source.written(key));
    const command: Command = ["evalsha", script.sha, String(keys.length), ...written, ...args];
    return this.#replicator(keys[0]).run(script, command, wait);
  }

  /** Sends a keyless command to every master. */
  async onMasters(command: Command): Promise<unknown[]> {
    if (!this.#source.cluster) return [await this.#send(command, FOREGROUND)];
    return Promise.all(this.#source.masters().map((node) => this.#settle(FOREGROUND, () => node.send(command))));
  }

  /** The keys of strings on all masters that match a glob pattern (prefix included, as SCAN gives them), page by page. */
  async *scan(pattern: string, count = 500): AsyncIterable<readonly string[]> {
    const senders = this.#source.cluster ? this.#source.masters() : [undefined];
    for (const sender of senders) {
      let cursor = "0";
      do {
        const command: Command = ["scan", cursor, "match", pattern, "count", String(count), "type", "string"];
        const reply =
          sender === undefined
            ? await this.#send(command, FOREGROUND)
            : await this.#settle(FOREGROUND, () => sender.send(command));
        const [next, keys] = reply as [unknown, readonly unknown[]];
        cursor = String(next);
        yield keys.map(String);
      } while (cursor !== "0");
    }
  }

  /**
   * Listens to one channel on a connection of its own, which is opened again whenever it breaks. Resolves when the
   * subscription stands; rejects when the first attempt fails.
   */
  async subscribe(channel: string, subscriber: Subscriber): Promise<Subscription> {
    const link = this.#link(
      () => this.#source.openSubscriber(),
      async (connection) => {
        await connection.subscribe(channel, (text) => subscriber.message(text));
        subscriber.subscribed();
      },
    );
    const stay = this.#options.clock.stayAlive();
    try {
      await link.open();
    } catch (error) {
      link.close();
      throw translate(error, this.#options.secrets);
    } finally {
      stay.cancel();
    }
    this.#subscriptions.add(link);
    return {
      close: () => {
        this.#subscriptions.delete(link);
        link.close();
      },
    };
  }

  /** Opens the connections of ours anew: what was sent on them may still be carried out. Not the user's own client. */
  reset(reason: string): void {
    const error = new RedisOutcomeUnknownError(reason);
    for (const link of [this.#main, ...this.#subscriptions]) link.drop(link.current, error);
  }

  /** Closes the connections of ours; commands without an answer are rejected. The user's client stays as it is. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#main.close();
    for (const link of this.#subscriptions) link.close();
    for (const replicator of this.#replicators.values()) replicator.close();
    this.#inFlight.clear();
    this.#release();
    await this.#source.close();
  }

  #link(open: () => Connection, prepare?: (connection: Connection) => Promise<void>): Link {
    const { clock, connectTimeoutMs } = this.#options;
    return new Link({ clock, openTimeoutMs: connectTimeoutMs, open, ...(prepare === undefined ? {} : { prepare }) });
  }

  #replicator(key: string): Replicator {
    const master = this.#source.masterOf(key);
    let replicator = this.#replicators.get(master);
    if (replicator === undefined) {
      const { commandTimeoutMs, secrets } = this.#options;
      const link = this.#link(() => this.#source.openDedicated(key));
      replicator = new Replicator({ link, inFlight: this.#inFlight, commandTimeoutMs, secrets });
      this.#replicators.set(master, replicator);
    }
    return replicator;
  }

  /** Sends on the main connection, as soon as there is one. */
  #send(command: Command, options: SendOptions, onNoScript?: () => Promise<unknown>): Promise<unknown> {
    const connection = this.#main.current;
    if (connection !== undefined) return this.#settle(options, () => connection.send(command, options.key), onNoScript);
    if (this.#closed) return Promise.reject(new RedisOutcomeUnknownError("the connection is closed"));
    const { timeoutMs = this.#options.commandTimeoutMs } = options;
    const untilMs = this.#options.clock.monotonicMs() + timeoutMs;
    return new Promise((resolve, reject) => {
      const stay = options.background === true ? undefined : this.#options.clock.stayAlive();
      const waiting = this.#inFlight.add(timeoutMs, () => {
        giveUp();
        stay?.cancel();
        reject(this.#noConnection(timeoutMs));
      });
      const giveUp = this.#main.whenOpen(() => {
        this.#inFlight.remove(waiting);
        stay?.cancel();
        const leftMs = Math.max(untilMs - this.#options.clock.monotonicMs(), 1);
        resolve(this.#send(command, { ...options, timeoutMs: leftMs }, onNoScript));
      });
    });
  }

  /** Waits for the answer to what `send` sends: no longer than the time-out, with errors of our own. */
  #settle(options: SendOptions, send: () => Promise<unknown>, onNoScript?: () => Promise<unknown>): Promise<unknown> {
    const { timeoutMs = this.#options.commandTimeoutMs } = options;
    const connection = this.#main.current;
    const foreground = options.background !== true;
    return new Promise((resolve, reject) => {
      const sent = send(); // first of all: what follows is done while the server works
      const waiting = this.#inFlight.add(timeoutMs, () => {
        if (foreground) this.#leave();
        reject(new RedisOutcomeUnknownError(`Redis did not answer within ${timeoutMs} ms`));
        this.#suspect(connection);
      });
      if (foreground) this.#enter();
      const inTime = (): boolean => {
        if (!this.#inFlight.remove(waiting)) return false;
        if (foreground) this.#leave();
        return true;
      };
      sent.then(
        (reply) => {
          if (inTime()) resolve(reply);
        },
        (error: unknown) => {
          if (!inTime()) return;
          const translated = translate(error, this.#options.secrets);
          if (onNoScript !== undefined && isNoScript(translated)) resolve(onNoScript());
          else reject(translated);
        },
      );
    });
  }

  /** Sends the script in full, once for all who miss it at the same time. */
  async #reload(script: Script, rest: readonly string[], options: SendOptions): Promise<unknown> {
    const underWay = this.#reloads.get(script.sha);
    if (underWay !== undefined) {
      await underWay.catch(() => {});
      try {
        return await this.#send(["evalsha", script.sha, ...rest], options);
      } catch (error) {
        // Another node of a Cluster, or a failed first attempt.
        if (!isNoScript(error)) throw error;
      }
    }
    const loading = this.#send(["eval", script.source, ...rest], options);
    this.#reloads.set(script.sha, loading);
    try {
      return await loading;
    } finally {
      if (this.#reloads.get(script.sha) === loading) this.#reloads.delete(script.sha);
    }
  }

  /** A connection that let a command time out is given up, and pub/sub with it: the same server is behind it. */
  #suspect(connection: Connection | undefined): void {
    const error = new RedisOutcomeUnknownError("a command was not answered in time");
    this.#main.drop(connection, error);
    for (const link of this.#subscriptions) link.drop(link.current, error);
  }

  /** While an answer is awaited the socket keeps the process alive, otherwise not. */
  #enter(): void {
    if (this.#foreground++ === 0) this.#main.current?.keepAlive(true);
  }

  #leave(): void {
    if (--this.#foreground === 0) this.#main.current?.keepAlive(false);
  }

  #noConnection(timeoutMs: number): RedisOutcomeUnknownError {
    const last = this.#main.lastError?.message;
    const why = last === undefined ? "" : `: ${redact(last, this.#options.secrets)}`;
    return new RedisOutcomeUnknownError(`no connection to Redis for ${timeoutMs} ms${why}`);
  }
}

function isNoScript(error: unknown): boolean {
  return error instanceof RedisReplyError && error.code === "NOSCRIPT";
}
