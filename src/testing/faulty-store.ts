/**
 * A lease store with faults in front of it: one that freezes, loses replies, bells or connections. For stores without
 * a server that could do these things by itself, and for tests of what stands on top of a store.
 */
import { sleep, type Clock } from "../engine/clock.ts";
import type { Queue, Traits } from "../engine/engine.ts";
import { EngineUnavailableError } from "../engine/errors.ts";
import type { Answer, Ask, LeaseStore, Renewal, StoreEvents } from "../engine/lease-store.ts";
import { PausableClock } from "./pausable-clock.ts";

/** How long a command waits for a frozen engine before it gives up; it may still take effect after the thaw. */
const COMMAND_TIMEOUT_MS = 800;

/** The faults of one engine, shared by all stores that stand for connections to it. */
export class Faults {
  commands = 0;
  bellsDropped = false;
  repliesLost = false;
  #frozen: Promise<void> | undefined;
  #thaw: (() => void) | undefined;
  #connections = new AbortController();

  freeze(): void {
    this.#frozen ??= new Promise((resolve) => (this.#thaw = resolve));
  }

  thaw(): void {
    this.#thaw?.();
    this.#frozen = undefined;
    this.#thaw = undefined;
  }

  /** Every command under way fails, whether or not it has taken effect. */
  cut(): void {
    const cut = this.#connections;
    this.#connections = new AbortController();
    cut.abort(new EngineUnavailableError("the connection was cut"));
  }

  /** Aborts when the connections of now are cut. */
  get connection(): AbortSignal {
    return this.#connections.signal;
  }

  async thawed(): Promise<void> {
    while (this.#frozen !== undefined) await this.#frozen;
  }
}

export class FaultyStore implements LeaseStore {
  readonly #store: LeaseStore;
  readonly #faults: Faults;
  readonly #clock: Clock;

  constructor(store: LeaseStore, faults: Faults, clock: Clock) {
    this.#store = store;
    this.#faults = faults;
    this.#clock = clock;
  }

  get traits(): Traits {
    return this.#store.traits;
  }

  open(events: StoreEvents): Promise<void> {
    const faults = this.#faults;
    return this.#store.open({
      granted: (owner, token) => {
        if (!faults.bellsDropped) this.#whenRunning(() => events.granted(owner, token));
      },
      check: (owner) => {
        if (!faults.bellsDropped) this.#whenRunning(() => events.check(owner));
      },
      checkAll: () => this.#whenRunning(() => events.checkAll()),
    });
  }

  request(ask: Ask): Promise<Answer> {
    return this.#command(() => this.#store.request(ask));
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.#command(() => this.#store.renew(renewals));
  }

  release(name: string, owner: string, token: bigint): Promise<void> {
    return this.#command(() => this.#store.release(name, owner, token));
  }

  withdraw(name: string, owner: string): Promise<void> {
    return this.#command(() => this.#store.withdraw(name, owner));
  }

  inspect(name: string): Promise<Queue> {
    return this.#command(() => this.#store.inspect(name));
  }

  names(prefix: string): AsyncIterable<string> {
    return this.#store.names(prefix);
  }

  evict(name: string, token: bigint): Promise<boolean> {
    return this.#command(() => this.#store.evict(name, token));
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  /** Takes effect when the engine runs; the caller hears of it unless the reply is lost or comes too late. */
  async #command<T>(run: () => Promise<T>): Promise<T> {
    this.#faults.commands++;
    const { connection } = this.#faults;
    const effect = this.#faults.thawed().then(run);
    effect.catch(() => {}); // nobody may be listening by then
    const done = new AbortController();
    const lost = this.#lost(AbortSignal.any([connection, done.signal]));
    try {
      const result = await Promise.race([effect, lost]);
      if (this.#faults.repliesLost) await lost;
      connection.throwIfAborted();
      return result;
    } finally {
      done.abort();
      if (this.#clock instanceof PausableClock) await this.#clock.running();
    }
  }

  /** A process that is stopped hears no bell before it goes on. */
  #whenRunning(ring: () => void): void {
    if (this.#clock instanceof PausableClock && this.#clock.paused) void this.#clock.running().then(ring);
    else ring();
  }

  /** Rejects when the command's time is up or its connection is cut. */
  async #lost(signal: AbortSignal): Promise<never> {
    await sleep(this.#clock, COMMAND_TIMEOUT_MS, signal);
    throw new EngineUnavailableError("the engine has not answered in time");
  }
}
