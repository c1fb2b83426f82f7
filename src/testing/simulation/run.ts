/** One seed: clients that lock, wait, steal nothing, give up, pause and die over a bad network; an observer that sees all. */
import { HoldfastError } from "../../engine/errors.ts";
import { LeaseEngine } from "../../engine/lease-engine.ts";
import { type LeaseStore } from "../../engine/lease-store.ts";
import { connect, type HeldLock, type LockManager, type LockMode } from "../../index.ts";
import { SimulatedServer, SimulatedStore, type Weather } from "./network.ts";
import { SimulatedProcess, World } from "./world.ts";

export interface SimulationOptions {
  /** How long the world lives, in its own ms. Default 8,000; the last 3,000 are calm. */
  readonly lifeMs?: number | undefined;
  readonly clients?: number | undefined;
  readonly names?: number | undefined;
  readonly ttlMs?: number | undefined;
  /** Changes the store of each client: to plant a mistake that the observer must see. */
  readonly plant?: ((store: LeaseStore) => LeaseStore) | undefined;
}

export interface SimulationResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly grants: number;
  readonly events: number;
}

const CALM_MS = 3_000;
const DRIFT = 0.004;

interface Seen {
  readonly lock: HeldLock;
  readonly by: SimulatedProcess;
  inside: boolean;
}

/** Everything that an all-knowing observer may complain about. */
class Observer {
  readonly violations: string[] = [];
  grants = 0;
  readonly #held = new Set<Seen>();
  readonly #lastToken = new Map<string, bigint>();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  granted(lock: HeldLock, by: SimulatedProcess): Seen {
    const seen = { lock, by, inside: true };
    this.grants++;
    // A process may learn of its grant late, when later grants are known already: order is judged among live holders.
    if (lock.isHeld()) {
      const last = this.#lastToken.get(lock.name) ?? 0n;
      if (lock.mode === "exclusive" && lock.token <= last)
        this.#complain(`S2: token ${lock.token} after ${last} for ${lock.name}`);
      if (lock.token > last) this.#lastToken.set(lock.name, lock.token);
    } else if (!by.paused) {
      this.#complain(`S5: ${by.name} was handed ${lock.name} past its deadline`);
    }
    this.#held.add(seen);
    return seen;
  }

  done(seen: Seen): void {
    seen.inside = false;
    this.#held.delete(seen);
  }

  /** Called after every event: whoever says that it holds must be alone, or among readers. */
  look(): void {
    const holders = new Map<string, Seen>();
    for (const seen of this.#held) {
      if (seen.by.dead || !seen.lock.isHeld()) continue;
      const other = holders.get(seen.lock.name);
      if (other === undefined) holders.set(seen.lock.name, seen);
      else if (other.lock.mode === "exclusive" || seen.lock.mode === "exclusive") {
        this.#complain(`S1: ${other.by.name} and ${seen.by.name} both hold ${seen.lock.name}`);
        this.#held.delete(seen);
      }
    }
  }

  complain(text: string): void {
    this.#complain(text);
  }

  #complain(text: string): void {
    this.violations.push(`${text} at ${this.#world.nowMs.toFixed(1)} ms`);
  }
}

class Client {
  readonly #world: World;
  readonly #process: SimulatedProcess;
  readonly #locks: LockManager;
  readonly #observer: Observer;
  readonly #options: { readonly names: number; readonly ttlMs: number };
  waitingSinceMs: number | undefined;

  constructor(
    process: SimulatedProcess,
    locks: LockManager,
    observer: Observer,
    options: { readonly names: number; readonly ttlMs: number },
  ) {
    this.#world = process.world;
    this.#process = process;
    this.#locks = locks;
    this.#observer = observer;
    this.#options = options;
  }

  /** Locks and unlocks until the world is calm. */
  async work(untilMs: number): Promise<void> {
    while (this.#world.nowMs < untilMs) {
      const name = `name-${Math.floor(this.#world.random() * this.#options.names)}`;
      const mode: LockMode = this.#world.chance(0.3) ? "shared" : "exclusive";
      try {
        await this.#once(name, mode);
      } catch (error) {
        if (!(error instanceof HoldfastError)) this.#observer.complain(`unexpected ${String(error)}`);
      }
      await this.#sleep(this.#world.between(1, 30));
    }
  }

  /** A last lock of each name, when all is calm: nothing may be left in the way. */
  async serveAll(): Promise<void> {
    for (let index = 0; index < this.#options.names; index++) {
      this.waitingSinceMs = this.#world.nowMs;
      const lock = await this.#locks.acquire(`name-${index}`, { ttlMs: this.#options.ttlMs });
      this.waitingSinceMs = undefined;
      await lock.release();
    }
  }

  async #once(name: string, mode: LockMode): Promise<void> {
    const { ttlMs } = this.#options;
    const dice = this.#world.random();
    let lock: HeldLock | null;
    if (dice < 0.15) lock = await this.#locks.tryAcquire(name, { mode, ttlMs });
    else if (dice < 0.4) lock = await this.#locks.acquire(name, { mode, ttlMs, waitMs: this.#world.between(1, 400) });
    else lock = await this.#locks.acquire(name, { mode, ttlMs });
    if (lock === null) return;
    const seen = this.#observer.granted(lock, this.#process);
    const untilMs = this.#world.nowMs + this.#world.between(0, this.#world.chance(0.1) ? 3 * ttlMs : 60);
    while (lock.isHeld() && this.#world.nowMs < untilMs) await this.#sleep(this.#world.between(1, 20));
    // Some forget to release at once after a loss; that must harm nobody.
    await lock.release();
    this.#observer.done(seen);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#process.after(ms, resolve));
  }
}

/** Runs the world of `seed`. Same seed, same result. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<SimulationResult> {
  const { lifeMs = 8_000, clients: count = 4, names = 2, ttlMs = 300 } = options;
  const world = new World(seed);
  const weather: Weather = {
    lost: world.between(0, 0.05),
    doubled: world.between(0, 0.03),
    lostBells: world.chance(0.3) ? 1 : world.between(0, 0.2),
    slow: world.between(0, 0.1),
    slowMs: 150,
  };
  const server = new SimulatedServer(world, world.between(-DRIFT, DRIFT));
  const observer = new Observer(world);
  const calmMs = lifeMs - CALM_MS;
  const clients: Client[] = [];
  for (let index = 0; index < count; index++) {
    const process = new SimulatedProcess(world, `client-${index}`, world.between(-DRIFT, DRIFT));
    const store = new SimulatedStore(process, server, weather);
    const locks = await connect(new LeaseEngine(options.plant?.(store) ?? store, process));
    const client = new Client(process, locks, observer, { names, ttlMs });
    clients.push(client);
    disturb(world, process, calmMs, ttlMs, index > 0 && world.chance(0.2));
    world.after(0, () => {
      client.work(calmMs).catch((error: unknown) => observer.complain(`a client failed: ${String(error)}`));
    });
  }
  freezeServer(world, server, calmMs, ttlMs);
  world.after(calmMs, () => {
    Object.assign(weather, { lost: 0, doubled: 0, lostBells: 0, slow: 0 } satisfies Partial<Weather>);
    const process = new SimulatedProcess(world, "last", 0);
    void connect(new LeaseEngine(new SimulatedStore(process, server, weather), process)).then((locks) => {
      const last = new Client(process, locks, observer, { names, ttlMs });
      clients.push(last);
      return last.serveAll();
    });
  });
  await world.live(lifeMs, () => observer.look());
  const last = clients[count];
  if (last === undefined || last.waitingSinceMs !== undefined)
    observer.complain("L1/L3: a name was not free after the calm");
  return { seed, violations: observer.violations, grants: observer.grants, events: world.events };
}

/** Pauses now and then, sometimes past the lease; `mortal` ones die once. */
function disturb(world: World, process: SimulatedProcess, untilMs: number, ttlMs: number, mortal: boolean): void {
  if (mortal) world.after(world.between(200, untilMs), () => process.kill());
  const next = (): void => {
    if (world.nowMs > untilMs) return;
    process.pause(Math.min(world.between(0, 2.5 * ttlMs), untilMs - world.nowMs));
    world.after(world.between(300, 3_000), next);
  };
  world.after(world.between(100, 3_000), next);
}

function freezeServer(world: World, server: SimulatedServer, untilMs: number, ttlMs: number): void {
  const next = (): void => {
    if (world.nowMs > untilMs) return;
    server.process.pause(Math.min(world.between(0, 1.5 * ttlMs), untilMs - world.nowMs));
    world.after(world.between(1_000, 4_000), next);
  };
  world.after(world.between(500, 4_000), next);
}
