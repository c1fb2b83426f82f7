/** One connection of ours that is opened again whenever it ends, by unref'd timers with growing pauses. */
import type { Clock, Timer } from "../engine/clock.ts";
import type { Connection } from "./connection.ts";
import { RedisOutcomeUnknownError } from "./errors.ts";

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

export interface LinkOptions {
  readonly clock: Clock;
  /** An attempt to open that takes longer has failed. */
  readonly openTimeoutMs: number;
  readonly open: () => Connection;
  /** Called with each new connection before it is handed out (to subscribe). */
  readonly prepare?: (connection: Connection) => Promise<void>;
}

export class Link {
  readonly #options: LinkOptions;
  #current: Connection | undefined;
  #attempt: Promise<Connection> | undefined;
  #waiting: ((connection: Connection) => void)[] = [];
  #timer: Timer | undefined;
  #failures = 0;
  #closed = false;
  #lastError: Error | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Why the connection was lost, or could not be opened, last. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** The connection while there is one. */
  get current(): Connection | undefined {
    return this.#current;
  }

  /** One attempt to open it, shared with whoever else asks meanwhile. Rejects with the reason when it fails. */
  open(): Promise<Connection> {
    if (this.#current !== undefined) return Promise.resolve(this.#current);
    if (this.#closed) return Promise.reject(new RedisOutcomeUnknownError("the connection is closed"));
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#attempt ??= this.#try().finally(() => (this.#attempt = undefined));
    return this.#attempt;
  }

  /** Calls `use` as soon as there is a connection again, however many attempts that takes. Returns how to give up. */
  whenOpen(use: (connection: Connection) => void): () => void {
    this.#waiting.push(use);
    if (this.#timer === undefined) this.#again();
    return () => {
      this.#waiting = this.#waiting.filter((each) => each !== use);
    };
  }

  /** Gives up `connection`, which does not answer, if it is still the present one; another is opened. */
  drop(connection: Connection | undefined, error: Error): void {
    if (connection === undefined || connection !== this.#current) return;
    connection.close();
    this.#ended(connection, error);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#waiting = [];
    this.#current?.close();
    this.#current = undefined;
  }

  async #try(): Promise<Connection> {
    let connection: Connection | undefined;
    try {
      connection = this.#options.open();
      await this.#inTime(this.#prepare(connection));
      if (this.#closed) throw new RedisOutcomeUnknownError("the connection is closed");
    } catch (error) {
      connection?.close();
      this.#failed(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
    this.#opened(connection);
    return connection;
  }

  async #prepare(connection: Connection): Promise<void> {
    await connection.ready();
    await this.#options.prepare?.(connection);
  }

  /** A frozen server accepts connections and never answers: the library alone would wait for ever. */
  #inTime(work: Promise<void>): Promise<void> {
    const { clock, openTimeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const late = new RedisOutcomeUnknownError(`no connection within ${openTimeoutMs} ms`);
      const timer = clock.after(openTimeoutMs, () => reject(late));
      work.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  #opened(connection: Connection): void {
    this.#current = connection;
    this.#failures = 0;
    connection.onEnd((error) => this.#ended(connection, error));
    for (const use of this.#waiting.splice(0)) use(connection);
  }

  #ended(connection: Connection, error: Error): void {
    if (this.#current !== connection) return;
    this.#current = undefined;
    this.#failed(error);
  }

  /** The first attempt follows at once, the others after a pause, partly drawn so that clients do not come in step. */
  #failed(error: Error): void {
    this.#lastError = error;
    if (this.#closed) return;
    const { clock } = this.#options;
    const pauseMs = this.#failures === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
    this.#failures++;
    this.#timer?.cancel();
    this.#timer = clock.after(pauseMs * (0.5 + clock.random() / 2), () => this.#again());
  }

  /** A failure is told by `#failed`, which sets the next timer. */
  #again(): void {
    this.#timer = undefined;
    this.open().catch(() => {});
  }
}
