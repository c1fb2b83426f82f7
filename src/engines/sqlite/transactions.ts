/**
 * Turns at the write lock of the lock file. SQLite lets one writer in at a time; a busy time-out of its own would stop
 * the event loop, so the time-out is 0 and trying again is done here, asynchronously.
 */
import type { StatementSync } from "node:sqlite";
import type { Clock, Timer } from "../../engine/clock.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import { CLAIM_AFTER_MS, type RightOfWay } from "./right-of-way.ts";
import { engineError, isBusy } from "./sqlite-errors.ts";
import type { Statements } from "./statements.ts";

/** The longest wait for the write lock. Somebody who holds it for so long is stopped or broken. */
const PATIENCE_MS = 5_000;
/** At most this many verbs share a transaction. */
const LARGEST_BATCH = 64;
/** The first tries come one turn of the event loop apart, about as long as a transaction; the others by timer. */
const EAGER_TRIES = 5;
const LONGEST_RETRY_MS = 2;

interface Job {
  readonly work: () => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly sinceMs: number;
}

export class Transactions {
  readonly #clock: Clock;
  readonly #path: string;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  /** Called after each commit, with nothing held: the place to ring bells. */
  readonly #committed: () => void;
  /** Called after each rollback: what the work has noted for `committed` never happened. */
  readonly #rolledBack: () => void;
  readonly #rightOfWay: RightOfWay;
  #jobs: Job[] = [];
  #scheduled = false;
  #tries = 0;
  #alive: Timer | undefined;

  constructor(
    clock: Clock,
    path: string,
    statements: Statements,
    rightOfWay: RightOfWay,
    committed: () => void,
    rolledBack: () => void,
  ) {
    this.#clock = clock;
    this.#path = path;
    this.#rightOfWay = rightOfWay;
    this.#begin = statements.get("begin");
    this.#commit = statements.get("commit");
    this.#rollback = statements.get("rollback");
    this.#committed = committed;
    this.#rolledBack = rolledBack;
  }

  /**
   * Runs `work` inside a write transaction, soon, together with what else is asked for in this turn. Rejects with
   * `EngineUnavailableError` when the file stays locked for 5 s, and with what `work` throws; nothing is written then.
   */
  run<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#jobs.push({ work, resolve, reject, sinceMs: this.#clock.monotonicMs() });
      if (this.#scheduled) return;
      this.#scheduled = true;
      queueMicrotask(() => this.#turn());
    });
  }

  #turn(): void {
    try {
      if (this.#rightOfWay.mustYield()) {
        this.#tryLater();
        return;
      }
      this.#begin.run();
    } catch (error) {
      if (isBusy(error)) this.#busy(error);
      else this.#failAll(error);
      return;
    }
    if (this.#tries > 0) this.#hadToWait();
    const batch = this.#jobs.length > LARGEST_BATCH ? this.#jobs.splice(0, LARGEST_BATCH) : this.#jobs;
    if (batch === this.#jobs) this.#jobs = [];
    this.#serve(batch);
    this.#scheduled = this.#jobs.length > 0;
    if (this.#scheduled) setImmediate(() => this.#turn());
  }

  /** Inside the transaction: runs the batch and ends the transaction either way. */
  #serve(batch: readonly Job[]): void {
    const results: unknown[] = [];
    try {
      for (const job of batch) results.push(job.work());
      this.#commit.run();
    } catch (error) {
      this.#undo();
      const known = engineError(error, this.#path);
      if (batch.length === 1) batch[0]?.reject(known);
      else this.#serveOneByOne(batch);
      return;
    }
    this.#committed();
    for (const [index, job] of batch.entries()) job.resolve(results[index] as never);
  }

  /** One of them failed: it must not take the others along. */
  #serveOneByOne(batch: readonly Job[]): void {
    for (const job of batch) {
      try {
        this.#begin.run();
      } catch (error) {
        job.reject(engineError(error, this.#path));
        continue;
      }
      this.#serve([job]);
    }
  }

  #undo(): void {
    try {
      this.#rollback.run();
    } catch {
      // SQLite has ended the transaction by itself.
    }
    this.#rolledBack();
  }

  #busy(error: unknown): void {
    const now = this.#clock.monotonicMs();
    const [oldest] = this.#jobs;
    if (oldest !== undefined && now - oldest.sinceMs > PATIENCE_MS) {
      const late = this.#jobs.filter((job) => now - job.sinceMs > PATIENCE_MS);
      this.#jobs = this.#jobs.filter((job) => now - job.sinceMs <= PATIENCE_MS);
      const message = `the lock file ${this.#path} has been locked by another process for ${PATIENCE_MS} ms`;
      for (const job of late) job.reject(new EngineUnavailableError(message, { cause: error }));
    }
    this.#scheduled = this.#jobs.length > 0;
    if (!this.#scheduled) {
      this.#hadToWait();
      return;
    }
    if (oldest !== undefined && now - oldest.sinceMs > CLAIM_AFTER_MS) this.#rightOfWay.claim();
    this.#tries++;
    if (this.#tries <= EAGER_TRIES) setImmediate(() => this.#turn());
    else this.#tryLater();
  }

  #tryLater(): void {
    this.#tries++;
    // Somebody awaits a transaction: the process must not end before it has had its turn.
    this.#alive ??= this.#clock.stayAlive();
    this.#clock.after(LONGEST_RETRY_MS * this.#clock.random(), () => this.#turn());
  }

  #hadToWait(): void {
    this.#tries = 0;
    this.#alive?.cancel();
    this.#alive = undefined;
    this.#rightOfWay.served();
  }

  #failAll(error: unknown): void {
    const jobs = this.#jobs;
    this.#jobs = [];
    this.#scheduled = false;
    const known = engineError(error, this.#path);
    for (const job of jobs) job.reject(known);
  }
}
