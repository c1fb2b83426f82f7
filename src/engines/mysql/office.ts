/** The connections of one engine: opened and checked, desks for the verbs, one for renewals, some that wait for bells. */
import { Backoff } from "../../engine/backoff.ts";
import { sleep, type Clock } from "../../engine/clock.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import type { StoreEvents } from "../../engine/lease-store.ts";
import type { HeldBells } from "./bells.ts";
import type { ConnectionSettings, Result } from "./client.ts";
import { Desk } from "./desk.ts";
import { Desks } from "./desks.ts";
import { failure, maySendAgain } from "./failure.ts";
import { rowSets } from "./rows.ts";
import { packet, type Packet } from "./packet.ts";
import { prepareSchema } from "./schema.ts";
import { openSession, type Session } from "./session.ts";
import { checkVersion, survey, type Survey } from "./survey.ts";
import { Watch } from "./watch.ts";

export interface OfficeOptions {
  readonly clock: Clock;
  readonly settings: () => ConnectionSettings;
  readonly migrate: boolean;
  readonly commandTimeoutMs: number;
  readonly connections: number;
  readonly waitingConnections: number;
}

/** Deadlocks and lock waits: so many tries, with short random pauses. */
const TRIES = 6;
const FIRST_PAUSE_MS = 4;
const LONGEST_PAUSE_MS = 100;
/** For connecting, making the tables and looking the server over. */
const OPENING_MS = 10_000;

export class Office {
  /** For renewals alone, so that they never stand in line behind other work. */
  readonly clerk: Desk;
  readonly #options: OfficeOptions;
  readonly #desks: Desks;
  #survey: Survey | undefined;
  #watch: Watch | undefined;

  constructor(options: OfficeOptions) {
    this.#options = options;
    const desk = {
      clock: options.clock,
      open: () => this.#connect(options.commandTimeoutMs),
      timeoutMs: options.commandTimeoutMs,
    };
    this.clerk = new Desk(desk);
    this.#desks = new Desks(desk, options.connections);
  }

  /** What the server is like; undefined before `open`. */
  get survey(): Survey | undefined {
    return this.#survey;
  }

  /** Connects, makes or checks the tables, looks the server over. Rejects with `ConfigError` or `EngineUnavailableError`. */
  async open(events: StoreEvents): Promise<Watch> {
    const sessions: Session[] = [];
    const timer = this.#options.clock.after(OPENING_MS, () => {
      for (const session of sessions) session.destroy();
    });
    try {
      this.#survey = await this.#lookOver(sessions);
    } catch (error) {
      for (const session of sessions) session.destroy();
      throw failure(error, "opening the mysql engine");
    } finally {
      timer.cancel();
    }
    this.#watch = this.#newWatch(events, this.#survey.bells);
    return this.#watch;
  }

  async #lookOver(sessions: Session[]): Promise<Survey> {
    const session = await this.#connect(OPENING_MS);
    sessions.push(session);
    await checkVersion(session);
    await prepareSchema(session, this.#options.migrate);
    const other = await this.#connect(OPENING_MS);
    sessions.push(other);
    const found = await survey(session, other, this.#options.clock);
    this.#desks.pick().adopt(session);
    this.clerk.adopt(other);
    return found;
  }

  /** The desk for the next verb. */
  desk(): Desk {
    return this.#desks.pick();
  }

  /** Sends a packet; again after a deadlock or a lock wait. Rejects with an error of ours. `doing` completes "while …"; `name`: see `Desk.run`. */
  async run(
    desk: Desk,
    build: (bells: HeldBells) => Packet,
    doing: string,
    name?: Uint8Array,
  ): Promise<readonly Result[]> {
    const { clock, commandTimeoutMs } = this.#options;
    const untilMs = clock.monotonicMs() + commandTimeoutMs;
    const pause = new Backoff(clock, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    for (let tries = 1; ; tries++) {
      try {
        return await desk.run(build, name);
      } catch (error) {
        if (!maySendAgain(error)) throw failure(error, doing);
        if (tries >= TRIES || clock.monotonicMs() >= untilMs) {
          throw new EngineUnavailableError(`other transactions were in the way while ${doing}`, {
            cause: failure(error, doing).cause,
          });
        }
        await sleep(clock, pause.next());
      }
    }
  }

  close(): void {
    this.#watch?.close();
    this.#desks.close();
    this.clerk.close();
  }

  #connect(timeoutMs: number): Promise<Session> {
    const { settings, clock } = this.#options;
    return openSession({ settings: settings(), clock, timeoutMs });
  }

  #newWatch(events: StoreEvents, bells: boolean): Watch {
    return new Watch({
      clock: this.#options.clock,
      open: () => this.#connect(this.#options.commandTimeoutMs),
      mostListeners: bells ? this.#options.waitingConnections : 0,
      isOurs: (prefix) => this.#desks.holds(prefix),
      look: async (owners) => {
        const values = { owners: owners.map((owner) => Buffer.from(owner)) };
        const results = await this.run(this.clerk, () => packet(["granted"], values), "looking for grants");
        return rowSets(results).flat();
      },
      events,
    });
  }
}
