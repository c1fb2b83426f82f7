/** The redlock engine with its own scripts, over a simulated network to several simulated servers, which may be restarted empty. */
import { RedlockEngine } from "../../../src/engines/redlock/engine.ts";
import type { Server } from "../../../src/engines/redlock/node.ts";
import { NODE_KEY } from "../../../src/engines/redlock/scripts.ts";
import { type RedlockTermsOptions, type Terms, termsOf } from "../../../src/engines/redlock/terms.ts";
import type { Weather } from "../../../src/testing/simulation/network.ts";
import type { SimulatedProcess, World } from "../../../src/testing/simulation/world.ts";
import type { Setting, SettingKind } from "../play.ts";
import { SimulatedRedis } from "../redis/server.ts";
import { SimulatedSockets } from "../redis/source.ts";

const DRIFT = 0.004;
const TTL_MS = 300;

export interface RedlockWorldOptions extends RedlockTermsOptions {
  readonly nodes?: number | undefined;
  /** A wrong quorum, which must be found. Default: the right one. */
  readonly quorum?: number | undefined;
  /** Nodes are restarted whenever the program says so, however many have no vote yet. Default: one at a time. */
  readonly careless?: boolean | undefined;
}

export function redlockWorld({ nodes = 3, quorum, careless = false, ...given }: RedlockWorldOptions = {}): SettingKind {
  const right = termsOf(nodes, { maxTtlMs: TTL_MS, nodeTimeoutMs: 20, maxClockSkewMs: 50, ...given });
  const terms = { ...right, quorum: quorum ?? right.quorum };
  const shape = {
    clients: 4,
    names: 2,
    servers: nodes,
    ttlMs: TTL_MS,
    fromMs: 20,
    toMs: 3_000,
    // A connection that hung while it was opened is given up after so long.
    settlesMs: 5_000,
    passesOnMs: 1_500,
    holdMs: 60,
    shared: false,
    restarts: true,
  };
  return { name: "redlock", shape, create: (world, weather) => createSetting(world, weather, terms, careless) };
}

function createSetting(world: World, weather: Weather, terms: Terms, careless: boolean): Setting {
  const nodes = Array.from(
    { length: terms.nodes },
    (_, index) => new SimulatedRedis(world, `node-${index}`, world.between(-DRIFT, DRIFT)),
  );
  // As `holdfast` has left them: the first use of an empty deployment is no part of this world.
  for (const node of nodes) {
    const record = ["run", node.run, "ttl", String(terms.maxTtlMs), "nodes", String(terms.nodes), "high", "0"];
    node.command(["hset", NODE_KEY, ...record, "floor", "0", "floor_at", "0"]);
  }
  const sockets = new Map<SimulatedProcess, SimulatedSockets>();
  return {
    engineFor: (process) => {
      const own = new SimulatedSockets(process, weather);
      sockets.set(process, own);
      const servers = nodes.map((node): Server => ({
        label: node.process.name,
        source: own.source(node),
        secrets: [],
        release: () => {},
      }));
      return new RedlockEngine(terms, process, async () => servers);
    },
    freeze: (server, ms) => nodes[server]?.process.pause(ms),
    restart: (server) => {
      // More than a minority at once is a new deployment: then nothing is promised of the locks before.
      if (careless || nodes.every((node) => node.isRun(NODE_KEY, "run"))) nodes[server]?.restartEmpty();
    },
    killed: (process) => sockets.get(process)?.hangUp(),
    look: () => [],
  };
}
