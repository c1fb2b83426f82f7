/** The zookeeper engine: one session carries all locks of a lock manager. */
import { Alarms } from "../../engine/alarms.ts";
import type { Clock } from "../../engine/clock.ts";
import type { Engine, Grant, Queue, RequestSpec, Traits } from "../../engine/engine.ts";
import { ClosedError, ConfigError } from "../../engine/errors.ts";
import type { Acl, WatchEvent, ZooKeeper } from "../../zookeeper/index.ts";
import type { Attempt, Ground } from "./attempt.ts";
import { failureOf, isSessionOver } from "./failure.ts";
import { Generations } from "./generations.ts";
import { namesOf, queueReading, raceReading, type Reading } from "./inspection.ts";
import { lockPath } from "./lock-path.ts";
import type { LockSession } from "./lock-session.ts";
import { QueueRequest } from "./queue-request.ts";
import { RaceRequest } from "./race-request.ts";
import { prepareRoot } from "./root.ts";
import { SessionKeeper, type SessionSettings } from "./session-keeper.ts";

export interface EngineSettings extends SessionSettings {
  /** Recipe 2, or recipe 1. */
  readonly fair: boolean;
  readonly root: string;
  readonly acl: Acl | undefined;
}

export class ZooKeeperEngine implements Engine {
  readonly traits: Traits;
  readonly clock: Clock;
  readonly #settings: EngineSettings;
  readonly #sessions: SessionKeeper;
  readonly #reading: Reading;
  readonly #ground: Ground;
  readonly #attempts = new Set<Attempt>();
  #closing: Promise<void> | undefined;

  constructor(settings: EngineSettings) {
    const { clock, fair, root, acl } = settings;
    this.clock = clock;
    this.traits = traitsOf(fair);
    this.#settings = settings;
    this.#sessions = new SessionKeeper(settings);
    this.#reading = fair ? queueReading : raceReading;
    this.#ground = { clock, alarms: new Alarms(clock), root, acl, generations: new Generations() };
  }

  /** The session of now, for tests. @internal */
  get session(): LockSession | undefined {
    return this.#sessions.latest;
  }

  async open(): Promise<void> {
    const { root, acl, fair } = this.#settings;
    try {
      await prepareRoot(await this.#zk(), root, acl, fair ? "queue" : "race");
    } catch (error) {
      await this.close();
      throw failureOf(error);
    }
  }

  async request(spec: RequestSpec, signal?: AbortSignal): Promise<Grant | null> {
    for (;;) {
      if (this.#closing !== undefined) throw new ClosedError();
      signal?.throwIfAborted();
      const session = this.#sessions.now ?? (await this.#sessions.get(signal));
      checkGrace(spec, session);
      const attempt = this.#settings.fair
        ? new QueueRequest(this.#ground, session, spec)
        : new RaceRequest(this.#ground, session, spec);
      this.#attempts.add(attempt);
      try {
        const outcome = await attempt.outcome(signal);
        if (outcome !== "again") return outcome;
      } finally {
        this.#attempts.delete(attempt);
      }
    }
  }

  async inspect(name: string): Promise<Queue> {
    return await this.#read((zk) => this.#reading.inspect(zk, this.#settings.root, name));
  }

  async *names(prefix = ""): AsyncIterable<string> {
    try {
      yield* namesOf(await this.#zk(), this.#settings.root, prefix);
    } catch (error) {
      throw failureOf(error);
    }
  }

  async evict(name: string, token: bigint): Promise<boolean> {
    return await this.#read((zk) => this.#reading.evict(zk, this.#settings.root, name, token));
  }

  /** A persistent watch on the container of the name, set again in each new session; needs ZooKeeper 3.6. */
  watch(name: string, changed: () => void): () => void {
    const path = lockPath(this.#settings.root, name, this.#ground.generations.of(name));
    let stopped = false;
    let watched: ZooKeeper | undefined;
    const watcher = ({ type }: WatchEvent): void => {
      changed();
      if (type === "lost" && !stopped) void set();
    };
    const set = async (): Promise<void> => {
      try {
        watched = await this.#zk();
        await watched.addWatch(path, watcher);
        // What happened before it stood was not seen.
        changed();
      } catch {
        // Then there is no hint, and observers look now and then.
      }
      if (stopped) unset();
    };
    const unset = (): void => void watched?.removeWatches(path, watcher).catch(() => {});
    void set();
    return () => {
      stopped = true;
      unset();
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const attempt of this.#attempts) attempt.abandon(new ClosedError());
    await this.#sessions.close();
    this.#ground.alarms.clear();
  }

  async #zk(): Promise<ZooKeeper> {
    return (this.#sessions.now ?? (await this.#sessions.get(undefined))).zk;
  }

  /** Once more in a new session when the old one turns out to be over. */
  async #read<T>(read: (zk: ZooKeeper) => Promise<T>): Promise<T> {
    try {
      try {
        return await read(await this.#zk());
      } catch (error) {
        if (!isSessionOver(error) || this.#closing !== undefined) throw error;
        return await read(await this.#zk());
      }
    } catch (error) {
      throw failureOf(error);
    }
  }
}

function traitsOf(fair: boolean): Traits {
  return {
    engine: "zookeeper",
    fair,
    shared: fair,
    limits: fair,
    // A node made at the grant would queue behind those that wait; and no node outlives its session.
    steal: false,
    minHold: false,
    lease: "session",
    bells: "push",
    scope: "network",
    survivesRestart: true,
    survivesFailover: true,
    // Servers measure sessions with a monotonic clock.
    survivesClockJump: true,
  };
}

function checkGrace({ graceMs }: RequestSpec, { leaseMs }: LockSession): void {
  if (graceMs <= leaseMs / 2) return;
  throw new ConfigError(`graceMs (${graceMs}) must be at most half of the session's lease, which is ${leaseMs} ms`);
}
