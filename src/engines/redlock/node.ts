/**
 * One Redis server: a connection of our own, which incarnation is behind it, and whether that one is admitted. A
 * restart breaks the connection, so the run id learned on it is that of every command sent on it.
 */
import type { Clock } from "../../engine/clock.ts";
import { ConfigError } from "../../engine/errors.ts";
import type { Command, Connection, Source } from "../../redis/connection.ts";
import { RedisOutcomeUnknownError, RedisReplyError, translate } from "../../redis/errors.ts";
import type { InFlight } from "../../redis/in-flight.ts";
import { Link } from "../../redis/link.ts";
import type { Script } from "../../redis/script.ts";
import type { ClockGuard } from "./clock-guard.ts";
import { NODE_KEY } from "./scripts.ts";
import type { Terms } from "./terms.ts";

/** What a node knows of itself and of its deployment. */
export interface NodeRecord {
  /** The incarnation that is admitted; "" for none. */
  readonly run: string;
  readonly maxTtlMs: number;
  readonly nodes: number;
  /** The highest counter of any name. */
  readonly high: number;
}

/** One life of the server, as seen on one connection. */
export interface Incarnation {
  readonly run: string;
  /** When we saw it first, or saw that it has forgotten its admission (FLUSHALL), on our monotonic clock. */
  seenAtMs: number;
  record: NodeRecord;
}

/** How to reach a server, and what to call it. */
export interface Server {
  /** For messages: never holds a secret. */
  readonly label: string;
  readonly source: Source;
  /** Never to appear in an error. */
  readonly secrets: readonly string[];
  /** Called when the engine is closed. */
  readonly release: () => void;
}

export interface NodeEvents {
  /** A connection was made or lost, or the node was found not to be admitted. */
  changed(node: RedlockNode): void;
}

/** A connection that leaves a command without an answer for this many rounds' patience is given up. */
const PATIENCE_ROUNDS = 5;
const SHORTEST_PATIENCE_MS = 250;
/** For connecting, logging in and the first look. */
const OPEN_TIMEOUT_MS = 5_000;

export class RedlockNode {
  readonly index: number;
  /** For messages: never holds a secret. */
  readonly label: string;
  readonly #source: Source;
  readonly #secrets: readonly string[];
  readonly #terms: Terms;
  readonly #clock: Clock;
  readonly #guard: ClockGuard;
  readonly #inFlight: InFlight;
  readonly #events: NodeEvents;
  readonly #link: Link;
  readonly #patienceMs: number;
  #incarnation: Incarnation | undefined;
  #problem: ConfigError | undefined;
  #heardAtMs = -Infinity;

  constructor(
    index: number,
    { label, source, secrets }: Server,
    ground: { terms: Terms; clock: Clock; guard: ClockGuard; inFlight: InFlight },
    events: NodeEvents,
  ) {
    this.index = index;
    this.label = label;
    this.#source = source;
    this.#secrets = secrets;
    this.#terms = ground.terms;
    this.#clock = ground.clock;
    this.#guard = ground.guard;
    this.#inFlight = ground.inFlight;
    this.#events = events;
    this.#patienceMs = Math.max(SHORTEST_PATIENCE_MS, PATIENCE_ROUNDS * this.#terms.nodeTimeoutMs);
    this.#link = new Link({
      clock: this.#clock,
      openTimeoutMs: Math.max(this.#patienceMs, OPEN_TIMEOUT_MS),
      open: () => this.#source.openDedicated(NODE_KEY),
      prepare: (connection) => this.#prepare(connection),
    });
  }

  /** The incarnation that we are connected to. */
  get incarnation(): Incarnation | undefined {
    return this.#link.current === undefined ? undefined : this.#incarnation;
  }

  /** Whether this incarnation has a vote. */
  get admitted(): boolean {
    const { incarnation } = this;
    if (incarnation === undefined) return false;
    return !this.#terms.restartGuard || incarnation.record.run === incarnation.run;
  }

  /** Why this server can never be one of the nodes as it is set up. */
  get problem(): ConfigError | undefined {
    return this.#problem;
  }

  /** Why there is no connection. */
  get lastError(): string {
    const error = this.#link.lastError;
    return error === undefined ? "not connected" : translate(error, this.#secrets).message;
  }

  /** The run id that scripts compare; "" with the restart guard off. */
  get run(): string {
    return this.#terms.restartGuard ? (this.incarnation?.run ?? "none") : "";
  }

  /** When it answered last, on our monotonic clock. */
  get heardAtMs(): number {
    return this.#heardAtMs;
  }

  get source(): Source {
    return this.#source;
  }

  /** One attempt to connect. Rejects with the reason, which for a server that is set up wrongly is a `ConfigError`. */
  async open(): Promise<void> {
    await this.#link.open();
  }

  /**
   * Runs a script whose reply starts {verdict, s, µs}; resolves to the reply. Rejects when the node is not connected, or
   * answers with an error; a connection that does not answer at all is given up after a while. One round trip.
   */
  eval(script: Script, keys: readonly string[], args: readonly string[]): Promise<readonly unknown[]> {
    const connection = this.#link.current;
    if (connection === undefined) return Promise.reject(new RedisOutcomeUnknownError(this.lastError));
    const command: [string, ...string[]] = ["evalsha", script.sha, String(keys.length)];
    for (const key of keys) command.push(this.#source.written(key));
    for (const arg of args) command.push(arg);
    return this.#timed(connection, command, this.#readFields, script);
  }

  /** Runs a plain command. Keys in it are the caller's to write. */
  async command(command: Command): Promise<unknown> {
    const connection = this.#link.current;
    if (connection === undefined) throw new RedisOutcomeUnknownError(this.lastError);
    return await this.#timed(connection, command, (reply) => reply);
  }

  /** Reads the node's clock, so that a jump is seen while nothing else is asked. */
  async look(): Promise<void> {
    const connection = this.#link.current;
    if (connection === undefined) return;
    await this.#timed(connection, ["time"], (reply, sentMs) => {
      const [seconds, micros] = reply as readonly unknown[];
      this.#sample(sentMs, Number(seconds), Number(micros));
    });
  }

  /** Reads the node's record again: whether it is admitted, and how high its counters are. */
  async refresh(): Promise<Incarnation> {
    const connection = this.#link.current;
    const incarnation = this.#incarnation;
    if (connection === undefined || incarnation === undefined) throw new RedisOutcomeUnknownError(this.lastError);
    const record = await this.#timed(connection, this.#recordCommand(), recordOf);
    if (record.run !== incarnation.run) this.markForeign();
    incarnation.record = record;
    this.#checkRecord(incarnation);
    return incarnation;
  }

  /** The node has said that it is not admitted, whatever we believed. */
  markForeign(): void {
    const { incarnation } = this;
    if (incarnation === undefined || !this.admitted) return;
    incarnation.record = { ...incarnation.record, run: "" };
    incarnation.seenAtMs = this.#clock.monotonicMs();
    this.#events.changed(this);
  }

  /** This incarnation has been admitted, by us. */
  markAdmitted(run: string): void {
    const { incarnation } = this;
    if (incarnation?.run !== run) return;
    incarnation.record = { ...incarnation.record, run };
    this.#events.changed(this);
  }

  async close(): Promise<void> {
    this.#link.close();
    await this.#source.close();
  }

  async #prepare(connection: Connection): Promise<void> {
    connection.onEnd(() => queueMicrotask(() => this.#events.changed(this)));
    const sentMs = this.#clock.monotonicMs();
    const [info, time, record] = await Promise.all([
      connection.send(["info"]),
      connection.send(["time"]),
      connection.send(this.#recordCommand()),
    ]);
    const [seconds, micros] = time as readonly unknown[];
    this.#sample(sentMs, Number(seconds), Number(micros));
    const settings = parseInfo(String(info));
    const seenAtMs = this.#clock.monotonicMs();
    const run = settings.get("run_id") ?? "";
    const before = this.#incarnation;
    // The same incarnation on a new connection: we have watched it since we saw it first.
    this.#incarnation = {
      run,
      seenAtMs: before?.run === run ? before.seenAtMs : seenAtMs,
      record: recordOf(record),
    };
    this.#problem = settingsProblem(this.label, settings);
    this.#checkRecord(this.#incarnation);
    if (this.#problem !== undefined) throw this.#problem;
    // Told once the link hands the connection out, which is a little later.
    this.#link.whenOpen(() => this.#events.changed(this));
  }

  #recordCommand(): Command {
    return ["hmget", this.#source.written(NODE_KEY), "run", "ttl", "nodes", "high"];
  }

  /** Clients that disagree on the terms would not protect each other. */
  #checkRecord({ run, record }: Incarnation): void {
    if (!this.#terms.restartGuard || record.run !== run) return;
    if (record.maxTtlMs === this.#terms.maxTtlMs && record.nodes === this.#terms.nodes) return;
    this.#problem = new ConfigError(
      `${this.label} belongs to a deployment of ${record.nodes} nodes with maxTtlMs ${record.maxTtlMs}, ` +
        `this client was told of ${this.#terms.nodes} nodes with maxTtlMs ${this.#terms.maxTtlMs}: all clients must agree`,
    );
  }

  /** Sends `command`; `read` makes the result of the reply, and is told when it was sent. `script`: the one that it names. */
  #timed<T>(
    connection: Connection,
    command: Command,
    read: (reply: unknown, sentMs: number) => T,
    script?: Script,
  ): Promise<T> {
    const sentMs = this.#clock.monotonicMs();
    const sent = connection.send(command);
    let answered = false;
    const overdue = (): void => this.#overdue(connection, () => answered);
    const waiting = this.#inFlight.add(this.#patienceMs, overdue, sentMs);
    return sent.then(
      (reply) => {
        answered = true;
        this.#inFlight.remove(waiting);
        return read(reply, sentMs);
      },
      (error: unknown) => {
        answered = true;
        this.#inFlight.remove(waiting);
        const translated = translate(error, this.#secrets);
        if (script === undefined || !isNoScript(translated)) throw translated;
        return this.#timed(connection, ["eval", script.source, ...command.slice(2)], read);
      },
    );
  }

  /** After a blocked event loop the answer may be here, unread: it gets one turn before the connection is given up. */
  #overdue(connection: Connection, isAnswered: () => boolean): void {
    this.#clock.after(0, () => {
      if (isAnswered()) return;
      this.#link.drop(connection, new RedisOutcomeUnknownError(`no answer for ${this.#patienceMs} ms`));
      this.#events.changed(this);
    });
  }

  readonly #readFields = (reply: unknown, sentMs: number): readonly unknown[] => {
    const fields = reply as readonly unknown[];
    this.#sample(sentMs, Number(fields[1]), Number(fields[2]));
    return fields;
  };

  #sample(sentMs: number, seconds: number, micros: number): void {
    this.#heardAtMs = this.#clock.monotonicMs();
    this.#guard.sample(this.index, sentMs, this.#heardAtMs, seconds * 1_000 + micros / 1_000);
  }
}

function recordOf(reply: unknown): NodeRecord {
  const [run, ttl, nodes, high] = reply as readonly (string | null)[];
  return { run: run ?? "", maxTtlMs: Number(ttl ?? 0), nodes: Number(nodes ?? 0), high: Number(high ?? 0) };
}

function parseInfo(info: string): Map<string, string> {
  return new Map(
    info.split("\r\n").flatMap((line): [string, string][] => {
      const colon = line.indexOf(":");
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]];
    }),
  );
}

function settingsProblem(label: string, settings: ReadonlyMap<string, string>): ConfigError | undefined {
  if (settings.get("role") !== "master") {
    return new ConfigError(`${label} is a replica: the nodes of redlock are independent masters`);
  }
  const policy = settings.get("maxmemory_policy") ?? "noeviction";
  if (policy !== "noeviction" && settings.get("maxmemory") !== "0") {
    return new ConfigError(`${label} evicts keys when its memory is full (${policy}): set maxmemory-policy noeviction`);
  }
  if ((settings.get("run_id") ?? "") === "") return new ConfigError(`${label} does not tell its run_id in INFO`);
  return undefined;
}

function isNoScript(error: unknown): boolean {
  return error instanceof RedisReplyError && error.code === "NOSCRIPT";
}
