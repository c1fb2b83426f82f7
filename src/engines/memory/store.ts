/** A connection to a memory space: the lease store that `LeaseEngine` drives. */
import type { Clock } from "../../engine/clock.ts";
import type { Queue, Traits } from "../../engine/engine.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import type { Answer, Ask, LeaseStore, Renewal, StoreEvents } from "../../engine/lease-store.ts";
import type { MemorySpace, Moment } from "./space.ts";

const TRAITS: Traits = {
  engine: "memory",
  fair: true,
  shared: true,
  limits: true,
  steal: true,
  minHold: true,
  lease: "lease",
  bells: "push",
  scope: "process",
  survivesRestart: false,
  survivesFailover: false,
  survivesClockJump: true,
};

export class MemoryStore implements LeaseStore {
  readonly traits: Traits = TRAITS;
  readonly #space: MemorySpace;
  readonly #clock: Clock;
  #events: StoreEvents | undefined;

  constructor(space: MemorySpace, clock: Clock) {
    this.#space = space;
    this.#clock = clock;
  }

  async open(events: StoreEvents): Promise<void> {
    this.#events = events;
  }

  async request(ask: Ask): Promise<Answer> {
    return this.#space.request(ask, this.#bell(), this.#now());
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    const now = this.#now();
    return renewals.map((each) => this.#space.renew(each.name, each.owner, each.ttlMs, each.pendingTtlMs, now));
  }

  async release(name: string, owner: string): Promise<void> {
    this.#space.leave(name, owner, true, this.#now());
  }

  async withdraw(name: string, owner: string): Promise<void> {
    this.#space.leave(name, owner, false, this.#now());
  }

  async inspect(name: string): Promise<Queue> {
    const now = this.#now();
    return this.#space.list(name, now).map((request) => ({
      mode: request.ask.mode,
      limit: request.ask.limit,
      token: request.token ?? null,
      client: request.ask.client,
      sinceMs: request.sinceMs,
      remainingMs: request.expiresAtMs - now.monoMs,
      value: request.ask.value,
    }));
  }

  async *names(prefix: string): AsyncIterable<string> {
    for (const name of this.#space.names()) if (name.startsWith(prefix)) yield name;
  }

  async evict(name: string, token: bigint): Promise<boolean> {
    return this.#space.evict(name, token, this.#now());
  }

  watch(name: string, changed: () => void): () => void {
    return this.#space.watch(name, changed);
  }

  async close(): Promise<void> {
    this.#events = undefined;
  }

  #now(): Moment {
    return { monoMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs() };
  }

  #bell(): StoreEvents {
    if (this.#events === undefined) throw new EngineUnavailableError("the memory engine is not open");
    return this.#events;
  }
}
