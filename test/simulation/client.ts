/** One client of a simulated world: the real locks over a simulated way to the engine, doing what the program says. */
import type { Wish } from "../../src/engine/queue.ts";
import { HoldfastError, type HeldLock, type LockManager, type LockSet } from "../../src/index.ts";
import type { RecordedRequest } from "../../src/testing/history/index.ts";
import type { SimulatedProcess } from "../../src/testing/simulation/world.ts";
import type { Observer, Seen } from "./observer.ts";
import type { Kind, Step } from "./program.ts";

export const ELECTION = "election";

/** How late a refusal may come. */
const LATE_MS = 50;

type Doing<Verb extends Step["do"]> = Extract<Step, { readonly do: Verb }>;

export interface ClientGround {
  readonly process: SimulatedProcess;
  readonly observer: Observer;
  readonly locks: Promise<LockManager>;
  readonly ttlMs: number;
  /** What each term has published, to be compared with what observers saw. */
  readonly published: Map<bigint, string>;
  readonly sighted: Map<bigint, string | null>;
}

export function nameOf(index: number): string {
  return `name-${index}`;
}

function wishOf(kind: Kind): Wish {
  if (typeof kind === "number") return { mode: "shared", limit: kind };
  return kind === "read" ? { mode: "shared", limit: Infinity } : { mode: "exclusive", limit: 1 };
}

function recipe(locks: LockManager, kind: Kind, name: string): ReturnType<LockManager["mutex"]> {
  if (typeof kind === "number") return locks.semaphore(name, { permits: kind });
  if (kind === "mutex") return locks.mutex(name);
  return locks.readWriteLock(name)[kind];
}

export class SimulatedClient {
  readonly #ground: ClientGround;
  /** What has not come to its end yet, in words. */
  readonly #busy = new Map<symbol, string>();

  constructor(ground: ClientGround) {
    this.#ground = ground;
  }

  get process(): SimulatedProcess {
    return this.#ground.process;
  }

  /** What is still going on. Nothing counts of a dead process. */
  get busy(): readonly string[] {
    return this.process.dead ? [] : [...this.#busy.values()];
  }

  /** Does one step of the program, beside what it does already. */
  start(step: Doing<"lock" | "set" | "lead" | "observe">): void {
    const key = Symbol(step.do);
    this.#busy.set(key, step.do);
    const work = async (): Promise<void> => {
      try {
        await this.#do(step);
      } catch (error) {
        if (!(error instanceof HoldfastError)) this.#ground.observer.complain(`${this.process.name}: ${String(error)}`);
      }
      this.#busy.delete(key);
    };
    this.process.deliver(() => void work());
  }

  async #do(step: Doing<"lock" | "set" | "lead" | "observe">): Promise<void> {
    const locks = await this.#ground.locks;
    if (step.do === "lock") await this.#lock(locks, step);
    else if (step.do === "set") await this.#set(locks, step);
    else if (step.do === "lead") await this.#lead(locks, step);
    else await this.#observe(locks, step);
  }

  async #lock(locks: LockManager, { kind, name, waitMs, holdMs }: Doing<"lock">): Promise<void> {
    const wish = wishOf(kind);
    const mutex = recipe(locks, kind, nameOf(name));
    const request = this.#request(nameOf(name), wish);
    const { ttlMs } = this.#ground;
    const lock = await this.#asking([request], waitMs, () =>
      waitMs === 0 ? mutex.tryAcquire({ ttlMs }) : mutex.acquire({ ttlMs, ...(waitMs === null ? {} : { waitMs }) }),
    );
    if (lock === null) return;
    const seen = this.#ground.observer.granted(lock, wish, this.process, request);
    await this.#hold(() => lock.isHeld(), holdMs);
    await this.#release([seen], lock);
  }

  async #set(locks: LockManager, { names, shared, waitMs, holdMs }: Doing<"set">): Promise<void> {
    const wish = wishOf(shared ? "read" : "mutex");
    const wanted = [...new Set(names)].sort((left, right) => left - right).map(nameOf);
    const requests = wanted.map((name) => this.#request(name, wish));
    const { ttlMs } = this.#ground;
    const set = await this.#asking(requests, waitMs, () =>
      locks.acquireAll(names.map(nameOf), { ttlMs, mode: wish.mode, ...(waitMs === null ? {} : { waitMs }) }),
    );
    if (set === null) return;
    const seen = set.locks.map((lock, index) => {
      const request = requests[index];
      if (request === undefined || lock.name !== wanted[index])
        throw new Error(`not the names that were asked for: ${lock.name}`);
      return this.#ground.observer.granted(lock, wish, this.process, request);
    });
    await this.#hold(() => this.#allHeld(set), holdMs);
    await this.#release(seen, set);
  }

  #allHeld(set: LockSet): boolean {
    const each = set.locks.every((lock) => lock.isHeld());
    if (set.isHeld() !== each) this.#ground.observer.complain("a set is held when each of its locks is, and only then");
    return each;
  }

  async #lead(locks: LockManager, { termMs, forMs }: Doing<"lead">): Promise<void> {
    const { process, observer, ttlMs, published } = this.#ground;
    const stop = new AbortController();
    process.after(forMs, () => stop.abort());
    const value = process.name;
    const wish = wishOf("mutex");
    const election = locks.election(ELECTION, { ttlMs });
    while (!stop.signal.aborted) {
      let request = this.#request(ELECTION, wish);
      let served = false;
      const term = async (lock: HeldLock): Promise<void> => {
        if (served) request = this.#request(ELECTION, wish);
        served = true;
        published.set(lock.token, value);
        const seen = observer.granted(lock, wish, process, request);
        await this.#hold(() => lock.isHeld() && !lock.signal.aborted, termMs);
        observer.releasing(seen);
        request.released();
      };
      try {
        await election.lead(term, { signal: stop.signal, value });
      } finally {
        if (!served) request.refused("ended");
      }
      await this.#sleep(1);
    }
  }

  async #observe(locks: LockManager, { forMs }: Doing<"observe">): Promise<void> {
    const { process, observer, sighted } = this.#ground;
    const stop = new AbortController();
    process.after(forMs, () => stop.abort());
    let last = 0n;
    for await (const leader of locks.election(ELECTION).observe({ signal: stop.signal, everyMs: 100 })) {
      if (leader === null) continue;
      if (leader.token <= last) observer.complain(`${process.name} saw term ${leader.token} after term ${last}`);
      last = leader.token;
      sighted.set(leader.token, leader.value);
    }
  }

  #request(name: string, { mode, limit }: Wish): RecordedRequest {
    return this.#ground.observer.recorder(this.process.name).request({ name, mode, limit });
  }

  /** Asks; a refusal is told and passed on, and has to come in time. */
  async #asking<T>(
    requests: readonly RecordedRequest[],
    waitMs: number | null,
    ask: () => Promise<T | null>,
  ): Promise<T | null> {
    const { process, observer } = this.#ground;
    const runMs = process.runMs;
    try {
      const got = await ask();
      if (got === null) for (const request of requests) request.refused("busy");
      return got;
    } catch (error) {
      for (const request of requests) request.refused(error instanceof HoldfastError ? error.code : String(error));
      const tookMs = process.runMs - runMs;
      if (waitMs !== null && waitMs > 0 && tookMs > waitMs + LATE_MS)
        observer.complain(
          `L3: ${process.name} was to wait ${waitMs} ms and had its answer after ${tookMs.toFixed(1)} ms of its time`,
        );
      throw error;
    }
  }

  async #hold(isHeld: () => boolean, ms: number): Promise<void> {
    const untilMs = this.process.monotonicMs() + ms;
    while (isHeld() && this.process.monotonicMs() < untilMs)
      await this.#sleep(Math.min(ms, this.process.world.between(1, 20)));
  }

  /** Some release once more, later: that must harm nobody. */
  async #release(seen: readonly Seen[], lock: { release(): Promise<void> }): Promise<void> {
    for (const each of seen) this.#ground.observer.releasing(each);
    await lock.release();
    for (const each of seen) each.request.released();
    if (this.process.world.chance(0.2)) {
      await this.#sleep(this.process.world.between(1, 100));
      await lock.release();
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.process.after(ms, resolve));
  }
}
