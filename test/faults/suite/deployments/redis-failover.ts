/** A master, two replicas, three Sentinels: failovers, with grants that count only once a replica has them, or without. */
import { setTimeout as sleep } from "node:timers/promises";
import { startSentinelRedis } from "../../../../servers/redis-topologies.ts";
import type { RedisServer } from "../../../../servers/redis.ts";
import { engineFor, type Deployment, type EngineSpec } from "../deployment.ts";
import { until } from "../server-faults.ts";
import { COMMAND_TIMEOUT_MS, connectionsTo, immortalKeys } from "./redis.ts";

const DOWN_AFTER_MS = 700;

export async function redisFailoverDeployment(minReplicas: 0 | 1): Promise<Deployment> {
  const group = await startSentinelRedis({ durable: true, downAfterMs: DOWN_AFTER_MS });
  const servers = [group.master, ...group.replicas];
  const addresses = group.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const spec: EngineSpec = {
    kind: "redis",
    options: {
      url: `redis+sentinel://${addresses}/${group.masterName}`,
      minReplicas,
      replicaTimeoutMs: 400,
      commandTimeoutMs: COMMAND_TIMEOUT_MS,
      connectTimeoutMs: 1_000,
    },
  };
  const master = async (): Promise<RedisServer> => {
    const port = await group.masterPort();
    const server = servers.find((each) => each.port === port);
    if (server === undefined) throw new Error(`the Sentinels name port ${port}, which is none of ours`);
    return server;
  };
  const inStep = (): Promise<void> =>
    until("two replicas follow the master", async () => {
      const info = String(await (await master()).command("INFO", "replication"));
      return info.includes("role:master") && info.split("state=online").length - 1 === 2;
    });
  const another = (old: RedisServer): Promise<void> =>
    until("the Sentinels have chosen another master", async () => (await master()) !== old);
  const breaksExclusion = minReplicas === 0;
  return {
    engine: minReplicas === 0 ? "redis-failover-unconfirmed" : "redis-failover",
    what: `a master, two replicas, three Sentinels; minReplicas ${minReplicas}`,
    traits: engineFor(spec).traits,
    spec,
    ttlMs: 2_000,
    roundingMs: 0,
    faults: [
      {
        name: "masters killed, failovers",
        breaksExclusion,
        async run() {
          const old = await master();
          await old.kill();
          await another(old);
          await sleep(300);
          await old.restart();
          await inStep();
        },
      },
      {
        name: "masters frozen, failovers",
        breaksExclusion,
        async run(forMs) {
          const old = await master();
          old.freeze();
          await another(old);
          await sleep(forMs);
          old.thaw(); // for a moment there are two masters
          await inStep();
        },
      },
      {
        name: "masters frozen",
        async run(forMs) {
          const server = await master();
          server.freeze();
          await sleep(Math.min(forMs, DOWN_AFTER_MS / 2));
          server.thaw();
        },
      },
      {
        name: "replicas frozen",
        async run(forMs, dice) {
          const current = await master();
          const server = dice.pick(servers.filter((each) => each !== current));
          server.freeze();
          await sleep(forMs);
          server.thaw();
          await inStep();
        },
      },
      {
        name: "connections killed",
        async run() {
          const server = await master();
          for (const type of ["normal", "pubsub"])
            await server.command("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
        },
      },
    ],
    serving: inStep,
    leftovers: async () => immortalKeys([await master()]),
    remains: async () => (await connectionsTo(servers)).filter((line) => !/name=sentinel-|flags=[SM]/.test(line)),
    stop: () => group.stop(),
  };
}
