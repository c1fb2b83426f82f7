/** The redis engine with its own scripts, over a simulated network to one simulated server. */
import { LeaseEngine } from "../../../src/engine/lease-engine.ts";
import { RedisStore } from "../../../src/engines/redis/store.ts";
import { RedisClient } from "../../../src/redis/index.ts";
import type { Weather } from "../../../src/testing/simulation/network.ts";
import type { SimulatedProcess, World } from "../../../src/testing/simulation/world.ts";
import type { Setting, SettingKind } from "../play.ts";
import { SimulatedRedis } from "../redis/server.ts";
import { SimulatedSockets } from "../redis/source.ts";
import type { Plant } from "../plants.ts";
import { LEASED } from "./lease.ts";

const DRIFT = 0.004;
const HOUR_MS = 3_600_000;
const COMMAND_TIMEOUT_MS = 80;

export function redisWorld(plant: Plant = (store) => store): SettingKind {
  const shape = { ...LEASED, fromMs: 20 };
  return { name: "redis", shape, create: (world, weather) => createSetting(world, weather, plant) };
}

function createSetting(world: World, weather: Weather, plant: Plant): Setting {
  const server = new SimulatedRedis(world, "server", world.between(-DRIFT, DRIFT));
  const sockets = new Map<SimulatedProcess, SimulatedSockets>();
  return {
    engineFor: (process) => {
      const own = new SimulatedSockets(process, weather);
      sockets.set(process, own);
      const limits = { commandTimeoutMs: COMMAND_TIMEOUT_MS, connectTimeoutMs: COMMAND_TIMEOUT_MS, secrets: [] };
      const connect = async (): Promise<RedisClient> =>
        new RedisClient(own.source(server), { clock: process, ...limits });
      const store = new RedisStore({
        connect,
        clock: process,
        prefix: "holdfast:",
        rememberMs: HOUR_MS,
        minReplicas: 0,
        replicaTimeoutMs: 1_000,
      });
      return new LeaseEngine(plant(store), process);
    },
    freeze: (_, ms) => server.process.pause(ms),
    restart: () => {},
    killed: (process) => sockets.get(process)?.hangUp(),
    look: () => [],
  };
}
