/** One Redis that keeps what it acknowledged; some seeds let it forget everything, others move its clock. */
import { startFaultProxy } from "../../../../servers/fault-proxy.ts";
import { startRedis, type RedisServer } from "../../../../servers/redis.ts";
import { engineFor, type Deployment, type EngineSpec, type FaultKind } from "../deployment.ts";
import type { Dice } from "../dice.ts";
import { networkFaults } from "../network.ts";
import { clockJumps, frozen, restarted, until } from "../server-faults.ts";

/** Shorter than a lease, so that lost replies are noticed in time. */
export const COMMAND_TIMEOUT_MS = 900;

export async function redisDeployment(dice: Dice): Promise<Deployment> {
  const server = await startRedis({ durable: true, clock: true });
  const proxy = await startFaultProxy(server.port);
  const options = { url: `redis://${proxy.address}`, commandTimeoutMs: COMMAND_TIMEOUT_MS, connectTimeoutMs: 1_000 };
  const spec: EngineSpec = { kind: "redis", options };
  // Not both in one run: a server that has forgotten a name and whose clock went back is the one case in which tokens may repeat.
  const forgets = dice.chance(0.5);
  const breaking: FaultKind = forgets
    ? { name: "servers restarted empty", breaksExclusion: true, run: () => server.restartEmpty() }
    : clockJumps("clock jumps", 2_500, () => server);
  return {
    engine: "redis",
    what: `one server, appendfsync always${forgets ? "; forgets now and then" : "; its clock jumps"}`,
    traits: engineFor(spec).traits,
    spec,
    ttlMs: 1_500,
    roundingMs: forgets ? 0 : 2_500,
    faults: [
      frozen("servers frozen", () => server),
      restarted("servers killed and restarted", () => server),
      breaking,
      {
        name: "bell connections killed",
        run: async () => void (await server.command("CLIENT", "KILL", "TYPE", "pubsub")),
      },
      ...networkFaults([proxy]),
    ],
    serving: () => until("Redis serves", async () => (await server.command("PING")) === "PONG"),
    leftovers: () => immortalKeys([server]),
    remains: () => connectionsTo([server]),
    stop: async () => {
      await proxy.close();
      await server.stop();
    },
  };
}

/** Keys that would stay for ever, and keys that only a queue has. */
export async function immortalKeys(servers: readonly RedisServer[]): Promise<string[]> {
  const found: string[] = [];
  for (const server of servers) {
    for (const key of (await server.command("KEYS", "*")) as string[]) {
      if (Number(await server.command("PTTL", key)) === -1) found.push(`the key ${key}, which never ends`);
    }
  }
  return found;
}

/** Connections of clients, after all have closed. */
export async function connectionsTo(servers: readonly RedisServer[]): Promise<string[]> {
  const found: string[] = [];
  for (const server of servers) {
    for (const type of ["normal", "pubsub"]) {
      const lines = String(await server.command("CLIENT", "LIST", "TYPE", type))
        .trim()
        .split("\n");
      const own = Number(await server.command("CLIENT", "ID"));
      for (const line of lines) if (line !== "" && !line.startsWith(`id=${own} `)) found.push(`a connection: ${line}`);
    }
  }
  return found;
}
