/**
 * A session that takes packets one after the other, and its bells. It connects when it is needed and again after a loss; what fails leaves no
 * transaction behind for the next one. Short packets that stand in line together share a transaction, and so a commit.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, Timer } from "../../engine/clock.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import { newBells, type HeldBells } from "./bells.ts";
import type { Result } from "./client.ts";
import { isReadOnly } from "./failure.ts";
import { type Packet, plainPacket, transaction } from "./packet.ts";
import type { Session } from "./session.ts";

const ROLLBACK = plainPacket("ROLLBACK");
/** A desk with this many packets in line refuses more: better a clear error than a growing heap. */
const LONGEST_LINE = 10_000;
/** So many packets share a transaction at most: its rows stay locked until it commits. */
const LARGEST_TRANSACTION = 16;

interface Job {
  /** Called when its turn comes, on a living session. */
  readonly build: (bells: HeldBells) => Packet;
  /** The name whose row is all that it locks: it may share a transaction with others of this kind. */
  readonly name: Uint8Array | undefined;
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
  #serving: readonly Job[] = [];
  #closed = false;

  constructor(options: DeskOptions) {
    this.#options = options;
    this.#bells = newBells(options.clock);
  }

  /** Packets under way and in line. */
  get load(): number {
    return this.#line.length + this.#serving.length;
  }

  /** The bells of the session as it is now; another object after a loss, when all bells are gone. */
  get bells(): HeldBells {
    return this.#bells;
  }

  /**
   * Sends a packet when its turn comes. Rejects with the driver's error, or with `EngineUnavailableError` when it is not
   * done in time; the connection is then given up, since what it is doing is unknown. `name`: the packet is one statement that
   * locks the row of that name and nothing else.
   */
  run(build: (bells: HeldBells) => Packet, name?: Uint8Array): Promise<readonly Result[]> {
    if (this.#closed) return Promise.reject(closed());
    if (this.#line.length >= LONGEST_LINE) {
      return Promise.reject(new EngineUnavailableError("too many commands wait for the MySQL server"));
    }
    return new Promise((resolve, reject) => {
      const job: Job = { build, name, resolve, reject, timer: undefined, late: false, done: false };
      job.timer = this.#options.clock.after(this.#options.timeoutMs, () => void this.#expire(job));
      this.#line.push(job);
      if (this.#serving.length === 0) void this.#serve();
    });
  }

  close(): void {
    this.#closed = true;
    const session = this.#session;
    if (this.#serving.length === 0) session?.end();
    else session?.destroy();
    for (const job of this.#line.splice(0)) this.#fail(job, closed());
  }

  async #serve(): Promise<void> {
    while (this.#line.length > 0) {
      this.#serving = this.#line.splice(0, this.#togetherInFront());
      if (this.#serving.length === 1 || !(await this.#serveTogether(this.#serving))) {
        for (const job of this.#serving) await this.#serveOne(job);
      }
    }
    this.#serving = [];
  }

  /** How many at the front of the line may share a transaction; 1: the first goes alone. */
  #togetherInFront(): number {
    const alone = this.#line.slice(0, LARGEST_TRANSACTION).findIndex((job) => job.name === undefined);
    return alone < 0 ? Math.min(this.#line.length, LARGEST_TRANSACTION) : Math.max(alone, 1);
  }

  async #serveOne(job: Job): Promise<void> {
    if (job.done) return;
    try {
      const session = this.#session ?? (await this.#connect());
      if (job.late) return;
      this.#finish(job, await session.run(job.build(this.#bells)));
    } catch (error) {
      await this.#rollBack();
      // The server was demoted: a new connection may lead to the one that takes writes now.
      if (isReadOnly(error)) this.#session?.destroy();
      this.#fail(job, error);
    }
  }

  /**
   * One transaction for several names, in the order of their bytes, so that two of these never wait for each other in a
   * circle. False: undone, each has to go alone.
   */
  async #serveTogether(jobs: readonly Job[]): Promise<boolean> {
    try {
      const session = this.#session ?? (await this.#connect());
      const [joined, packets]: [Job[], Packet[]] = [[], []];
      for (const job of jobs.filter((each) => !each.late).sort(byName)) {
        const packet = job.build(this.#bells);
        // One that takes bells as well goes alone: what follows an error would not be done, and bells outlive it.
        if (packet.statements > 1) this.#finish(job, await session.run(packet));
        else packets[joined.push(job) - 1] = packet;
      }
      const results = packets.length > 0 ? await session.run(transaction(packets)) : [];
      for (const [index, job] of joined.entries()) this.#finish(job, results.slice(index + 1, index + 2));
      return true;
    } catch {
      await this.#rollBack();
      return false;
    }
  }

  async #connect(): Promise<Session> {
    if (this.#closed) throw closed();
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
    if (this.#serving.includes(job)) this.#session?.destroy();
    else this.#line.splice(this.#line.indexOf(job), 1);
    this.#fail(job, new EngineUnavailableError(`the MySQL server did not answer within ${this.#options.timeoutMs} ms`));
  }

  #finish(job: Job, results: readonly Result[]): void {
    job.timer?.cancel();
    job.done = true;
    job.resolve(results);
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

function byName(left: Job, right: Job): number {
  return left.name === undefined || right.name === undefined ? 0 : Buffer.compare(left.name, right.name);
}
