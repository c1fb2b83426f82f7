/**
 * An engine on top of a `LeaseStore`: waiting, keep-alives, bells, lost replies, withdrawal, batches and deadlines,
 * the same for every store. See docs/decisions/0001-one-lease-engine.md.
 */
import { Alarms } from "./alarms.ts";
import type { Clock } from "./clock.ts";
import { Departures } from "./departures.ts";
import type { Engine, Grant, Queue, RequestSpec, Traits } from "./engine.ts";
import { ClosedError } from "./errors.ts";
import type { LeaseStore, StoreEvents } from "./lease-store.ts";
import { Place, type Ground } from "./place.ts";
import { RenewalBatches } from "./renewal-batches.ts";

/** How long `close` waits for what is being withdrawn; afterwards leases end the rest. */
const CLOSE_PATIENCE_MS = 2_000;

export class LeaseEngine implements Engine {
  readonly clock: Clock;
  readonly watch: Engine["watch"];
  readonly #store: LeaseStore;
  readonly #alarms: Alarms;
  readonly #departures: Departures;
  readonly #places = new Map<string, Place>();
  readonly #ground: Ground;
  #closing: Promise<void> | undefined;

  constructor(store: LeaseStore, clock: Clock) {
    this.clock = clock;
    this.watch = store.watch?.bind(store);
    this.#store = store;
    this.#alarms = new Alarms(clock);
    this.#departures = new Departures(clock, this.#alarms);
    this.#ground = {
      store,
      clock,
      alarms: this.#alarms,
      renewals: new RenewalBatches(store),
      departures: this.#departures,
      enter: (place) => this.#places.set(place.ask.owner, place),
      leave: (place) => this.#places.delete(place.ask.owner),
    };
  }

  /** Read through: a store may know some traits only once it is open. */
  get traits(): Traits {
    return this.#store.traits;
  }

  open(): Promise<void> {
    const events: StoreEvents = {
      granted: (owner, token) => this.#places.get(owner)?.granted(token),
      check: (owner) => this.#places.get(owner)?.check(),
      checkAll: () => {
        for (const place of this.#places.values()) place.check();
      },
    };
    return this.#store.open(events);
  }

  async request(spec: RequestSpec, signal?: AbortSignal): Promise<Grant | null> {
    for (;;) {
      if (this.#closing !== undefined) throw new ClosedError();
      signal?.throwIfAborted();
      const place = new Place(this.#ground, spec);
      const outcome = await place.wait(signal);
      if (outcome === "held") return place;
      if (outcome === "busy") return null;
      // Lapsed: its lease ran out while we live (a paused process, a server that forgot). Queue again, as a new request.
    }
  }

  inspect(name: string): Promise<Queue> {
    return this.#store.inspect(name);
  }

  names(prefix = ""): AsyncIterable<string> {
    return this.#store.names(prefix);
  }

  evict(name: string, token: bigint): Promise<boolean> {
    return this.#store.evict(name, token);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const place of this.#places.values()) place.close();
    await this.#departures.finish(CLOSE_PATIENCE_MS);
    this.#alarms.clear();
    await this.#store.close();
  }
}
