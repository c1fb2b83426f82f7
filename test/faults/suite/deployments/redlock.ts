/** Five independent Redis servers: one at a time crashes and comes back empty, is cut off, frozen, or has its clock set. */
import { setTimeout as sleep } from "node:timers/promises";
import { startFaultProxy } from "../../../../servers/fault-proxy.ts";
import { startRedis, type RedisServer } from "../../../../servers/redis.ts";
import { engineFor, type Deployment, type EngineSpec } from "../deployment.ts";
import { networkFaults } from "../network.ts";
import { clockJumps, frozen, until } from "../server-faults.ts";
import { connectionsTo, immortalKeys } from "./redis.ts";

const NODES = 5;
const MAX_TTL_MS = 2_000;
/** A node that came back empty votes again after this long; with some time for clients to notice. */
const AWAY_MS = 2 * MAX_TTL_MS + 1_500;

export async function redlockDeployment(): Promise<Deployment> {
  const servers = await Promise.all(Array.from({ length: NODES }, () => startRedis({ clock: true })));
  const proxies = await Promise.all(servers.map(({ port }) => startFaultProxy(port)));
  const options = {
    urls: proxies.map(({ address }) => `redis://${address}`),
    maxTtlMs: MAX_TTL_MS,
    nodeTimeoutMs: 100,
  };
  const spec: EngineSpec = { kind: "redlock", options };
  const first = engineFor({ kind: "redlock", options: { ...options, bootstrap: true } });
  await first.open();
  await first.close();
  const emptiedAtMs = new Map<RedisServer, number>();
  let wrongClockAtMs = -Infinity;
  const without = (): number => [...emptiedAtMs.values()].filter((atMs) => performance.now() - atMs < AWAY_MS).length;
  return {
    engine: "redlock",
    what: "five servers that keep nothing; their clocks jump",
    traits: first.traits,
    spec,
    ttlMs: 1_500,
    roundingMs: 500,
    faults: [
      frozen("nodes frozen", (dice) => dice.pick(servers)),
      {
        name: "nodes killed and restarted empty",
        // A majority that has forgotten everything is refused until somebody says "bootstrap": not here.
        possible: () => without() < 2,
        async run(forMs, dice) {
          const server = dice.pick(
            servers.filter((each) => performance.now() - (emptiedAtMs.get(each) ?? -1e9) > AWAY_MS),
          );
          emptiedAtMs.set(server, Infinity);
          await server.kill();
          await sleep(forMs / 2);
          await server.restart();
          emptiedAtMs.set(server, performance.now());
        },
      },
      {
        name: "majorities frozen",
        async run(forMs) {
          for (const server of servers.slice(0, 3)) server.freeze();
          await sleep(forMs);
          for (const server of servers) server.thaw();
        },
      },
      clockJumps("clock jumps of a node", 2_500, (dice) => {
        const server = dice.pick(servers);
        return {
          async setClockOffset(offsetMs) {
            wrongClockAtMs = performance.now();
            await server.setClockOffset(offsetMs);
          },
        };
      }),
      ...networkFaults(proxies),
    ],
    serving: async () => {
      await until("the nodes serve", async () => {
        const answers = await Promise.all(servers.map((server) => server.command("PING")));
        return answers.every((answer) => answer === "PONG");
      });
      // Nodes that came back empty, or whose clock was off, vote again.
      await sleep(Math.max(0, Math.max(wrongClockAtMs, ...emptiedAtMs.values()) + AWAY_MS - performance.now()));
    },
    leftovers: async () => (await immortalKeys(servers)).filter((line) => !line.includes("key holdfast:redlock:")),
    remains: () => connectionsTo(servers),
    stop: async () => {
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
