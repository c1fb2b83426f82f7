/**
 * A lease store behind a bad network: the memory engine's queue is the server, every verb is a message there and a
 * reply back. Messages are late, lost, doubled or overtake each other; bells may be lost; the server may freeze.
 */
import type { Queue, Traits } from "../../engine/engine.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import type { Answer, Ask, LeaseStore, Renewal, StoreEvents } from "../../engine/lease-store.ts";
import { MemorySpace, type Moment } from "../../engines/memory/space.ts";
import { MemoryStore } from "../../engines/memory/store.ts";
import { SimulatedProcess, type World } from "./world.ts";

export interface Weather {
  /** Share of messages and replies that never arrive. */
  lost: number;
  /** Share of messages that arrive twice, the second time much later. */
  doubled: number;
  /** Share of bells that never arrive. */
  lostBells: number;
  /** Share of messages that take up to `slowMs`; the others take up to 5 ms. */
  slow: number;
  slowMs: number;
}

const COMMAND_TIMEOUT_MS = 80;
const FAST_MS = 5;

/** The server: one queue space, a clock of its own. */
export class SimulatedServer {
  readonly process: SimulatedProcess;
  readonly space: MemorySpace = new MemorySpace();
  /** Called after every verb that it has carried out. */
  onVerb: () => void = () => {};

  constructor(world: World, drift: number) {
    this.process = new SimulatedProcess(world, "server", drift);
  }

  now(): Moment {
    return { monoMs: this.process.monotonicMs(), wallMs: this.process.wallMs() };
  }
}

/** One client's connection. */
export class SimulatedStore implements LeaseStore {
  readonly #client: SimulatedProcess;
  readonly #server: SimulatedServer;
  readonly #weather: Weather;
  readonly #inner: MemoryStore;

  constructor(client: SimulatedProcess, server: SimulatedServer, weather: Weather) {
    this.#client = client;
    this.#server = server;
    this.#weather = weather;
    this.#inner = new MemoryStore(server.space, server.process);
  }

  get traits(): Traits {
    return { ...this.#inner.traits, engine: "simulated", scope: "network" };
  }

  async open(events: StoreEvents): Promise<void> {
    const ring = (bell: () => void): void => {
      if (this.#world.chance(this.#weather.lostBells)) return;
      this.#world.after(this.#latencyMs(), () => this.#client.deliver(bell));
    };
    await this.#inner.open({
      granted: (owner, token) => ring(() => events.granted(owner, token)),
      check: (owner) => ring(() => events.check(owner)),
      checkAll: () => ring(() => events.checkAll()),
    });
  }

  request(ask: Ask): Promise<Answer> {
    return this.#call(() => this.#inner.request(ask));
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.#call(() => this.#inner.renew(renewals));
  }

  release(name: string, owner: string): Promise<void> {
    return this.#call(() => this.#inner.release(name, owner));
  }

  withdraw(name: string, owner: string): Promise<void> {
    return this.#call(() => this.#inner.withdraw(name, owner));
  }

  inspect(name: string): Promise<Queue> {
    return this.#call(() => this.#inner.inspect(name));
  }

  names(prefix: string): AsyncIterable<string> {
    return this.#inner.names(prefix);
  }

  evict(name: string, token: bigint): Promise<boolean> {
    return this.#call(() => this.#inner.evict(name, token));
  }

  async close(): Promise<void> {}

  get #world(): World {
    return this.#client.world;
  }

  #latencyMs(): number {
    const { slow, slowMs } = this.#weather;
    return this.#world.between(0.1, this.#world.chance(slow) ? slowMs : FAST_MS);
  }

  #call<T>(verb: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timeout = this.#client.after(COMMAND_TIMEOUT_MS, () => reject(new EngineUnavailableError("no answer")));
      const deliver = (answers: boolean): void => {
        this.#world.after(this.#latencyMs(), () =>
          this.#server.process.deliver(() => {
            const outcome = verb();
            this.#server.onVerb();
            if (answers && !this.#world.chance(this.#weather.lost))
              this.#reply(outcome, resolve, reject, () => timeout.cancel());
            else outcome.catch(() => {});
          }),
        );
      };
      if (!this.#world.chance(this.#weather.lost)) deliver(true);
      if (this.#world.chance(this.#weather.doubled))
        this.#world.after(this.#world.between(0, 300), () => deliver(false));
    });
  }

  #reply<T>(
    outcome: Promise<T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
    answered: () => void,
  ): void {
    const send = (receive: () => void): void =>
      this.#world.after(this.#latencyMs(), () =>
        this.#client.deliver(() => {
          answered();
          receive();
        }),
      );
    outcome.then(
      (value) => send(() => resolve(value)),
      (error: unknown) => send(() => reject(error)),
    );
  }
}
