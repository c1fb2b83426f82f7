/**
 * A session that takes packets one after the other, and its bells. It connects when it is needed and again after a loss; what fails leaves no
 * transaction behind for the next one.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, type Timer } from "../../engine/clock.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import { newBells, type HeldBells } from "./bells.ts";
import { type Result } from "./client.ts";
import { isReadOnly } from "./failure.ts";
import { type Packet, plainPacket } from "./packet.ts";
import { type Session } from "./session.ts";

const ROLLBACK = plainPacket("ROLLBACK");
/** A desk with this many packets in line refuses more: better a clear error than a growing heap. */
const LONGEST_LINE = 10_000;

interface Job {
  /** Called when its turn comes, on a living session. */
  readonly build: (bells: HeldBells) => Packet;
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
  timer: Timer | undefined;
  late: boolean;
  done: boolean;
}

export interface DeskOptions {
  readonly clock: Clock;
  readonly open: () => Promise<Session>;
  /** For one packet, waiting in line included, ms. */
  readonly timeoutMs: number;
}

export class Desk {
  readonly #options: DeskOptions;
  readonly #line: Job[] = [];
  #session: Session | undefined;
  #bells: HeldBells;
  #serving: Job | undefined;
  #closed = false;

  constructor(options: DeskOptions) {
    this.#options = options;
    this.#bells = newBells(options.clock);
  }

  /** Packets under way and in line. */
  get load(): number {
    return this.#line.length + (this.#serving === undefined ? 0 : 1);
  }

  /** The bells of the session as it is now; another object after a loss, when all bells are gone. */
  get bells(): HeldBells {
    return this.#bells;
  }

  /**
   * Sends a packet when its turn comes. Rejects with the driver's error, or with `EngineUnavailableError` when it is not
   * done in time; the connection is then given up, since what it is doing is unknown.
   */
  run(build: (bells: HeldBells) => Packet): Promise<readonly Result[]> {
    if (this.#closed) return Promise.reject(closed());
    if (this.#line.length >= LONGEST_LINE) {
      return Promise.reject(new EngineUnavailableError("too many commands wait for the MySQL server"));
    }
    return new Promise((resolve, reject) => {
      const job: Job = { build, resolve, reject, timer: undefined, late: false, done: false };
      job.timer = this.#options.clock.after(this.#options.timeoutMs, () => void this.#expire(job));
      this.#line.push(job);
      if (this.#serving === undefined) void this.#serve();
    });
  }

  close(): void {
    this.#closed = true;
    const session = this.#session;
    if (this.#serving === undefined) session?.end();
    else session?.destroy();
    for (const job of this.#line.splice(0)) this.#fail(job, closed());
  }

  async #serve(): Promise<void> {
    for (let job = this.#line.shift(); job !== undefined; job = this.#line.shift()) {
      this.#serving = job;
      try {
        const session = this.#session ?? (await this.#connect());
        if (job.late) continue;
        const results = await session.run(job.build(this.#bells));
        job.timer?.cancel();
        job.done = true;
        job.resolve(results);
      } catch (error) {
        await this.#rollBack();
        // The server was demoted: a new connection may lead to the one that takes writes now.
        if (isReadOnly(error)) this.#session?.destroy();
        this.#fail(job, error);
      }
    }
    this.#serving = undefined;
  }

  async #connect(): Promise<Session> {
    const session = await this.#options.open();
    if (this.#closed) {
      session.destroy();
      throw closed();
    }
    this.adopt(session);
    return session;
  }

  /** Goes on with a session that is open already. */
  adopt(session: Session): void {
    this.#session = session;
    session.onEnd(() => {
      if (this.#session !== session) return;
      this.#session = undefined;
      this.#bells = newBells(this.#options.clock);
    });
  }

  /** An error in the middle of a packet leaves its transaction open: the next packet must not commit half of this one. */
  async #rollBack(): Promise<void> {
    const session = this.#session;
    if (session === undefined) return;
    const timer = this.#options.clock.after(this.#options.timeoutMs, () => session.destroy());
    try {
      await session.run(ROLLBACK);
    } catch {
      session.destroy();
    } finally {
      timer.cancel();
    }
  }

  async #expire(job: Job): Promise<void> {
    // After a busy event loop timers run first, while the reply may have come long ago: it is read before we judge.
    await nextTurn();
    if (job.done) return;
    job.late = true;
    if (this.#serving === job) this.#session?.destroy();
    else this.#line.splice(this.#line.indexOf(job), 1);
    this.#fail(job, new EngineUnavailableError(`the MySQL server did not answer within ${this.#options.timeoutMs} ms`));
  }

  #fail(job: Job, error: unknown): void {
    job.timer?.cancel();
    job.done = true;
    job.reject(error);
  }
}

function closed(): EngineUnavailableError {
  return new EngineUnavailableError("the mysql engine is closed");
}
