/**
 * What one client does: several lanes that lock, write, wait, give up and release, each choosing by its own dice, and telling
 * the history everything. Runs in a process of its own, or beside others in one.
 */
import { sleep, type Clock } from "../../../src/engine/clock.ts";
import { HoldfastError, LockLostError, type HeldLock, type LockManager, type Traits } from "../../../src/index.ts";
import type { HistoryRecorder, RecordedRequest } from "../../../src/testing/history/index.ts";
import { Dice } from "./dice.ts";

/** The guarded thing: says whether the write was taken. */
export type Register = (resource: string, token: bigint, write: string) => Promise<boolean>;

export interface WorkerSetting {
  readonly seed: number;
  readonly lanes: number;
  readonly ttlMs: number;
  readonly traits: Traits;
}

export const PERMITS = 3;
/** Locks of the guarded things: `account-0` … */
export const ACCOUNTS = 4;
/** Between two looks at a lock that is held. */
const LOOK_EVERY_MS = 40;

class GaveUp extends Error {}

interface Wish {
  readonly name: string;
  readonly mode: "exclusive" | "shared";
  readonly limit: number | undefined;
}

export class Worker {
  /** Errors that no user should ever see. */
  readonly surprises: string[] = [];
  readonly #locks: LockManager;
  readonly #clock: Clock;
  readonly #recorder: HistoryRecorder;
  readonly #register: Register;
  readonly #setting: WorkerSetting;
  readonly #line = new Map<string, Promise<() => Promise<void>>>();
  #over = false;
  #lanes: Promise<unknown> = Promise.resolve();

  constructor(locks: LockManager, clock: Clock, recorder: HistoryRecorder, register: Register, setting: WorkerSetting) {
    this.#locks = locks;
    this.#clock = clock;
    this.#recorder = recorder;
    this.#register = register;
    this.#setting = setting;
  }

  start(): void {
    const { lanes, seed } = this.#setting;
    const running = Array.from({ length: lanes }, (_, lane) => this.#work(new Dice(seed * 100 + lane)));
    this.#lanes = Promise.all(running);
  }

  /** No new work; resolves when everything under way has its answer. */
  async finish(): Promise<void> {
    this.#over = true;
    await this.#lanes;
  }

  /** Asks for `name` and resolves when it is seen in the queue behind `ahead` others; the first one when it holds. */
  async queueUp(name: string, ahead: number): Promise<void> {
    const request = this.#recorder.request({ name });
    const held = this.#locks.acquire(name, { ttlMs: this.#setting.ttlMs }).then((lock) => {
      request.granted(lock);
      return () => this.#release(lock, request);
    });
    held.catch((error: unknown) => request.refused(nameOf(error)));
    this.#line.set(name, held);
    if (ahead === 0) await held;
    else if (this.#setting.traits.fair) {
      for (;;) {
        const { held: inside, pending } = await this.#locks.query({ name });
        if (inside.length + pending.length > ahead) break;
        await sleep(this.#clock, 20);
      }
      request.queued();
    }
  }

  /** Resolves when it has been served and has released what `queueUp` asked for. */
  async leave(name: string): Promise<void> {
    const release = await this.#line.get(name);
    await sleep(this.#clock, 5);
    await release?.();
  }

  async #work(dice: Dice): Promise<void> {
    while (!this.#over) {
      const wish = this.#wish(dice);
      const request = this.#recorder.request(wish);
      let lock: HeldLock | null = null;
      try {
        lock = await this.#acquire(wish, dice);
        if (lock === null) request.refused("busy");
      } catch (error) {
        request.refused(nameOf(error));
        if (!(error instanceof HoldfastError || error instanceof GaveUp)) this.surprises.push(String(error));
        await this.#pause(dice.between(20, 150)); // an engine that is away need not be asked all the time
      }
      if (lock !== null) await this.#inside(lock, wish, request, dice);
      await this.#pause(dice.between(0, 6));
    }
  }

  #wish(dice: Dice): Wish {
    const { shared, limits } = this.#setting.traits;
    const kind = dice.next();
    if (shared && kind < 0.3)
      return { name: "page", mode: dice.chance(0.3) ? "exclusive" : "shared", limit: undefined };
    if (limits && kind < 0.55) return { name: "pool", mode: "shared", limit: PERMITS };
    return { name: `account-${dice.whole(ACCOUNTS)}`, mode: "exclusive", limit: undefined };
  }

  async #acquire({ name, mode, limit }: Wish, dice: Dice): Promise<HeldLock | null> {
    const { ttlMs } = this.#setting;
    const how = dice.next();
    const lock = limit === undefined ? this.#recipe(name, mode) : this.#locks.semaphore(name, { permits: limit });
    if (how < 0.1) return await lock.tryAcquire({ ttlMs });
    if (how < 0.3) return await lock.acquire({ ttlMs, waitMs: dice.between(0, ttlMs / 2) });
    if (how < 0.4) {
      const giveUp = new AbortController();
      const timer = this.#clock.after(dice.between(0, ttlMs / 2), () => giveUp.abort(new GaveUp("gave up")));
      try {
        return await lock.acquire({ ttlMs, signal: giveUp.signal });
      } finally {
        timer.cancel();
      }
    }
    return await lock.acquire({ ttlMs });
  }

  #recipe(name: string, mode: "exclusive" | "shared") {
    if (!this.#setting.traits.shared) return this.#locks.mutex(name);
    const { read, write } = this.#locks.readWriteLock(name);
    return mode === "shared" ? read : write;
  }

  async #inside(lock: HeldLock, { name, mode }: Wish, request: RecordedRequest, dice: Dice): Promise<void> {
    request.granted(lock);
    lock.signal.addEventListener("abort", () => request.lost(lossOf(lock.signal.reason)), { once: true });
    const { ttlMs } = this.#setting;
    const untilMs = this.#clock.monotonicMs() + (dice.chance(0.03) ? dice.between(0, 2 * ttlMs) : dice.between(0, 15));
    const writes = mode === "exclusive" && dice.chance(0.6);
    if (writes) await this.#write(lock, name, request);
    while (lock.isHeld() && this.#clock.monotonicMs() < untilMs) {
      await this.#pause(Math.max(0, Math.min(LOOK_EVERY_MS, untilMs - this.#clock.monotonicMs())));
      if (!lock.signal.aborted) request.look(lock);
    }
    // A holder that did not look, or was stopped after it had: its token must not be taken once a later one was.
    if (writes && dice.chance(0.5)) await this.#write(lock, name, request);
    await this.#release(lock, request);
    if (dice.chance(0.05)) await lock.release(); // twice harms nobody
    if (writes && dice.chance(0.05)) await this.#write(lock, name, request);
  }

  async #write(lock: HeldLock, name: string, request: RecordedRequest): Promise<void> {
    const writing = request.writing(name);
    writing.done(await this.#register(name, lock.token, writing.write));
  }

  async #release(lock: HeldLock, request: RecordedRequest): Promise<void> {
    request.releasing();
    await lock.release();
    request.released();
  }

  #pause(ms: number): Promise<void> {
    return sleep(this.#clock, ms);
  }
}

function lossOf(reason: unknown): string {
  return reason instanceof LockLostError ? reason.reason : String(reason);
}

function nameOf(error: unknown): string {
  return error instanceof HoldfastError ? error.code : error instanceof GaveUp ? "gave up" : String(error);
}
