/** One connection of ours to the server: set up, one packet at a time, never hanging, never keeping the process alive. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../engine/clock.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import { beginConnection, type Connection, type ConnectionSettings, type Result } from "./client.ts";
import { isFatal, maySendAgain } from "./failure.ts";
import { plainPacket, type Packet, type Prepared } from "./packet.ts";

export interface SessionFactory {
  readonly settings: ConnectionSettings;
  readonly clock: Clock;
  /** For connecting and setting up together, ms. */
  readonly timeoutMs: number;
}

/**
 * READ COMMITTED has no gap locks and always reads what the row lock before it waited for. The SQL mode is fixed because
 * a server's own may change what our statements mean. The lock wait is short: the packet is sent again instead.
 */
const SET_UP = plainPacket(
  "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; " +
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', autocommit = 1, " +
    "innodb_lock_wait_timeout = 2, wait_timeout = 28800, sql_safe_updates = 0",
);

export class Session {
  readonly #connection: Connection;
  #reject: ((error: unknown) => void) | undefined;
  #ended = false;
  #textOnly = false;
  #onEnd: (() => void) | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.on("error", (error) => this.#end(error));
    connection.on("end", () => this.#end(undefined));
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Called once, when the connection is over for whatever reason. */
  onEnd(listener: () => void): void {
    this.#onEnd = listener;
  }

  /**
   * Sends one packet; the caller waits for its results before it sends the next. Rejects with the driver's error. An
   * `idle` packet (one that may sleep in the server) does not keep the process alive.
   */
  async run(packet: Packet, idle = false): Promise<readonly Result[]> {
    const { prepared } = packet;
    if (prepared === undefined || this.#textOnly)
      return await this.#send(packet.sql, undefined, packet.statements, idle);
    try {
      return await this.#send(prepared.sql, prepared.values, 1, idle);
    } catch (error) {
      if (isFatal(error) || this.#ended || maySendAgain(error)) throw error;
      // No prepared statements here: a proxy without them, or the server has no room for more. As text it may work.
      const results = await this.#send(packet.sql, undefined, packet.statements, idle);
      this.#textOnly = true;
      return results;
    }
  }

  #send(
    sql: string,
    values: Prepared["values"] | undefined,
    statements: number,
    idle: boolean,
  ): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => {
      if (this.#ended) {
        reject(new EngineUnavailableError("the connection to the MySQL server was lost"));
        return;
      }
      this.#reject = reject;
      if (!idle) this.#connection.stream.ref?.();
      const done = (error: Error | null, results: unknown): void => {
        this.#connection.stream.unref?.();
        this.#reject = undefined;
        if (error === null || error === undefined) {
          resolve((statements === 1 ? [results] : results) as Result[]);
          return;
        }
        reject(error);
        if (isFatal(error)) this.destroy();
      };
      if (values === undefined) this.#connection.query({ sql }, done);
      else this.#connection.execute({ sql, values: [...values] }, done);
    });
  }

  /** Ends the connection at once; what is under way is rejected and may or may not have happened. */
  destroy(): void {
    this.#connection.destroy();
    // The driver only says goodbye: a server that is frozen or cut off never answers that, and the socket would stay.
    this.#connection.stream.destroy?.();
    this.#end(undefined);
  }

  /** Ends an idle connection politely. */
  end(): void {
    this.#connection.end(() => this.#connection.destroy());
  }

  #end(error: Error | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#connection.destroy();
    this.#reject?.(error ?? new EngineUnavailableError("the connection to the MySQL server was lost"));
    this.#onEnd?.();
  }
}

/** Connects and sets up. Rejects with the driver's error, or with `EngineUnavailableError` when it takes too long. */
export async function openSession(factory: SessionFactory): Promise<Session> {
  const session = new Session(await beginConnection(factory.settings));
  // After a busy event loop timers run first, while the server's greeting may have come long ago.
  const timer = factory.clock.after(factory.timeoutMs, () => void nextTurn().then(() => late && session.destroy()));
  let late = true;
  try {
    await session.run(SET_UP);
    return session;
  } catch (error) {
    session.destroy();
    throw error;
  } finally {
    late = false;
    timer.cancel();
  }
}
