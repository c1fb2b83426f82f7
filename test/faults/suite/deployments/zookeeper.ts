/** An ensemble of three ZooKeeper servers: leaders and followers are killed, frozen and cut off. */
import { startFaultProxy } from "../../../../servers/fault-proxy.ts";
import { startEnsemble } from "../../../../servers/zookeeper-ensemble.ts";
import type { ZooKeeperServer } from "../../../../servers/zookeeper.ts";
import { engineFor, type Deployment, type EngineSpec } from "../deployment.ts";
import type { Dice } from "../dice.ts";
import { networkFaults } from "../network.ts";
import { frozen, restarted, until } from "../server-faults.ts";

const TICK_MS = 500;
const SYNC_LIMIT = 3;
const LAG_MS = (SYNC_LIMIT + 1) * TICK_MS;
const LEASE_MS = 2_500;

export async function zookeeperDeployment(): Promise<Deployment> {
  const ensemble = await startEnsemble({ tickTimeMs: TICK_MS, syncLimit: SYNC_LIMIT });
  const { servers } = ensemble;
  const proxies = await Promise.all(servers.map(({ port }) => startFaultProxy(port)));
  const spec: EngineSpec = {
    kind: "zookeeper",
    options: {
      servers: proxies.map(({ address }) => address).join(","),
      sessionTimeoutMs: LEASE_MS + LAG_MS,
      connectWithinMs: 5_000,
    },
  };
  const leader = (): Promise<ZooKeeperServer> => ensemble.leader();
  const follower = async (dice: Dice): Promise<ZooKeeperServer> => dice.pick(await ensemble.followers());
  const count = async (what: string): Promise<number> => {
    const [first] = servers;
    const answer = (await first?.ask("mntr")) ?? "";
    return Number(new RegExp(`^${what}\\t(\\d+)$`, "m").exec(answer)?.[1]);
  };
  const watches = async (): Promise<number> => {
    const answers = await Promise.all(servers.map((server) => server.ask("wchs")));
    return answers.reduce((sum, answer) => sum + Number(/Total watches:(\d+)/.exec(answer)?.[1]), 0);
  };
  return {
    engine: "zookeeper",
    what: "an ensemble of three",
    traits: engineFor(spec).traits,
    spec,
    ttlMs: LEASE_MS,
    roundingMs: LAG_MS + 2 * TICK_MS,
    faults: [
      restarted("leaders killed and restarted", leader),
      restarted("followers killed and restarted", follower),
      frozen("leaders frozen", leader),
      frozen("followers frozen", follower),
      ...networkFaults(proxies),
    ],
    serving: () =>
      until("the ensemble serves", async () => {
        const modes = await Promise.all(servers.map((server) => server.mode()));
        return modes.every((mode) => mode === "leader" || mode === "follower");
      }),
    leftovers: async () => {
      const [ephemerals, watched] = [await count("zk_ephemerals_count"), await watches()];
      return [
        ...(ephemerals === 0 ? [] : [`${ephemerals} ephemeral nodes`]),
        ...(watched === 0 ? [] : [`${watched} watches`]),
      ];
    },
    remains: async () => {
      const answers = await Promise.all(servers.map((server) => server.ask("dump")));
      const sessions = new Set(answers.flatMap((answer) => answer.match(/^0x[0-9a-f]+:?$/gm) ?? []));
      return [...sessions].map((session) => `the session ${session}`);
    },
    stop: async () => {
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await ensemble.stop();
    },
  };
}
