/** The lease engine over a simulated network; the server keeps its queues by the pure rule, and is watched all the same. */
import { LeaseEngine } from "../../../src/engine/lease-engine.ts";
import type { LeaseStore } from "../../../src/engine/lease-store.ts";
import { SimulatedServer, SimulatedStore, type Weather } from "../../../src/testing/simulation/network.ts";
import type { World } from "../../../src/testing/simulation/world.ts";
import type { Setting, SettingKind } from "../play.ts";
import { Witness } from "../witness.ts";

export interface LeaseWorldOptions {
  /** Changes the store of each client: to plant a mistake that must be found. */
  readonly plant?: ((store: LeaseStore) => LeaseStore) | undefined;
}

const DRIFT = 0.004;
const NAMES = 2;

/** Of the programs for engines with leases and one server. */
export const LEASED = {
  clients: 4,
  names: 2,
  servers: 1,
  ttlMs: 300,
  toMs: 3_000,
  settlesMs: 0,
  passesOnMs: 600,
  holdMs: 60,
  shared: true,
  restarts: false,
};

export function leaseWorld({ plant = (store) => store }: LeaseWorldOptions = {}): SettingKind {
  const shape = { ...LEASED, fromMs: 0 };
  return { name: "lease", shape, create: (world, weather) => createSetting(world, weather, plant) };
}

function createSetting(world: World, weather: Weather, plant: (store: LeaseStore) => LeaseStore): Setting {
  const server = new SimulatedServer(world, world.between(-DRIFT, DRIFT));
  const witness = new Witness();
  const wrong: string[] = [];
  server.onVerb = () => {
    const now = server.now();
    for (const name of ["election", ...Array.from({ length: NAMES }, (_, index) => `name-${index}`)]) {
      const queue = server.space.list(name, now).map(({ ask, mode, limit, token, expiresAtMs }) => ({
        owner: ask.owner,
        mode,
        limit,
        token,
        expiresAtMs,
      }));
      wrong.push(...witness.look(name, queue, now.monoMs));
    }
  };
  return {
    engineFor: (process) => new LeaseEngine(plant(new SimulatedStore(process, server, weather)), process),
    freeze: (_, ms) => server.process.pause(ms),
    restart: () => {},
    killed: () => {},
    look: () => wrong.splice(0),
  };
}
