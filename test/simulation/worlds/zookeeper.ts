/** The zookeeper engine, its client and its sessions, over a simulated network to one simulated server. */
import { ZooKeeperEngine } from "../../../src/engines/zookeeper/engine.ts";
import type { Weather } from "../../../src/testing/simulation/network.ts";
import type { SimulatedProcess, World } from "../../../src/testing/simulation/world.ts";
import type { Setting, SettingKind } from "../play.ts";
import { SimulatedZooKeeper } from "../zookeeper/server.ts";
import { SimulatedWire } from "../zookeeper/wire.ts";

const DRIFT = 0.004;
const SESSION_MS = 1_000;

const SHAPE = {
  clients: 4,
  names: 2,
  servers: 1,
  ttlMs: SESSION_MS,
  fromMs: 20,
  toMs: 4_000,
  settlesMs: 0,
  passesOnMs: 1_500,
  holdMs: 300,
  shared: true,
  restarts: true,
};

export interface ZooKeeperWorldOptions {
  /** A server that ends sessions sooner than it has promised, which must be found. Default: no. */
  readonly hasty?: boolean | undefined;
}

export function zookeeperWorld({ hasty = false }: ZooKeeperWorldOptions = {}): SettingKind {
  return { name: "zookeeper", shape: SHAPE, create: (world, weather) => createSetting(world, weather, hasty) };
}

function createSetting(world: World, weather: Weather, hasty: boolean): Setting {
  const server = new SimulatedZooKeeper(world, hasty ? 1 : world.between(-DRIFT, DRIFT));
  const wires = new Map<SimulatedProcess, SimulatedWire[]>();
  return {
    engineFor: (process) =>
      new ZooKeeperEngine({
        clock: process,
        servers: "server:2181",
        root: "/locks",
        fair: true,
        acl: undefined,
        auth: [],
        tls: undefined,
        sessionTimeoutMs: SESSION_MS,
        leaderLagMs: 0,
        connectWithinMs: 3 * SESSION_MS,
        openWire: (_host, _tls, onOpen) => {
          const wire = new SimulatedWire(process, server, weather, onOpen);
          wires.set(process, [...(wires.get(process) ?? []), wire]);
          return wire;
        },
      }),
    freeze: (_, ms) => server.process.pause(ms),
    restart: () => server.restart(),
    killed: (process) => wires.get(process)?.forEach((wire) => wire.hangUp()),
    look: () => [],
  };
}
