/** Several private Redis servers that belong together: a master with replicas, Sentinel, a Cluster. */
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./server-process.ts";
import { startRedis, type RedisServer, type RedisServerOptions } from "./redis.ts";

export interface ReplicatedRedis {
  readonly master: RedisServer;
  readonly replicas: readonly RedisServer[];
  stop(): Promise<void>;
}

/** A master and its replicas, all in step. About 0.3 s. */
export async function startReplicatedRedis(replicas = 2, options: RedisServerOptions = {}): Promise<ReplicatedRedis> {
  return together(async (start) => {
    const master = await start(options);
    const settings = [...(options.settings ?? []), `replicaof 127.0.0.1 ${master.port}`];
    const followers = await Promise.all(Array.from({ length: replicas }, () => start({ ...options, settings })));
    await until("the replicas are in step", async () => {
      const info = String(await master.command("INFO", "replication"));
      return info.split("state=online").length - 1 === replicas;
    });
    return { master, replicas: followers };
  });
}

export interface SentinelRedis extends ReplicatedRedis {
  readonly masterName: string;
  readonly sentinels: readonly RedisServer[];
  /** The port of the server that the Sentinels take for the master now. */
  masterPort(): Promise<number>;
}

/** A master, two replicas and three Sentinels that fail over once the master is gone for `downAfterMs` (default 700). */
export async function startSentinelRedis({
  downAfterMs = 700,
  ...options
}: RedisServerOptions & { downAfterMs?: number } = {}): Promise<SentinelRedis> {
  const masterName = "main";
  return together(async (start) => {
    const settings = ["repl-timeout 5", ...(options.settings ?? [])];
    const group = await startReplicatedRedis(2, { ...options, settings });
    start.adopt(() => group.stop());
    const { master, replicas } = group;
    const watch = [
      `sentinel monitor ${masterName} 127.0.0.1 ${master.port} 2`,
      `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
      `sentinel failover-timeout ${masterName} 3000`,
      `sentinel parallel-syncs ${masterName} 2`,
    ];
    if (options.password !== undefined) watch.push(`sentinel auth-pass ${masterName} ${options.password}`);
    const sentinels = await Promise.all(Array.from({ length: 3 }, () => start({ sentinel: true, settings: watch })));
    await until("the Sentinels know each other", async () => {
      const states = await Promise.all(sentinels.map((s) => s.command("SENTINEL", "MASTER", masterName)));
      return states.every((state) => {
        const list = state as string[];
        const field = (name: string) => list[list.indexOf(name) + 1];
        return field("num-other-sentinels") === "2" && field("num-slaves") === "2" && field("flags") === "master";
      });
    });
    const masterPort = async () => {
      for (const sentinel of sentinels) {
        const address = await sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).catch(() => null);
        if (Array.isArray(address)) return Number(address[1]);
      }
      throw new Error("no Sentinel answers");
    };
    return { masterName, master, replicas, sentinels, masterPort };
  });
}

export interface RedisCluster {
  /** The masters; the first has the lowest slots. */
  readonly nodes: readonly RedisServer[];
  /** Resolves when every node says that the Cluster is up: some time after a restart of a node. */
  serving(): Promise<void>;
  stop(): Promise<void>;
}

/** A Cluster of three masters (no replicas unless `replicas` is given, which each get). About a second. */
export async function startRedisCluster(
  options: RedisServerOptions & { replicas?: number } = {},
): Promise<RedisCluster> {
  const { replicas = 0, ...server } = options;
  return together(async (start) => {
    const startNode = async () => {
      const bus = await freePort();
      const lines = ["cluster-enabled yes", `cluster-port ${bus}`, "cluster-node-timeout 1500"];
      const node = await start({ ...server, settings: [...lines, ...(server.settings ?? [])] });
      return { node, bus };
    };
    const masters = await Promise.all([startNode(), startNode(), startNode()]);
    const bounds = [0, 5461, 10923, 16384];
    await Promise.all(
      masters.map(async ({ node }, n) => {
        await node.command("CLUSTER", "SET-CONFIG-EPOCH", n + 1);
        await node.command("CLUSTER", "ADDSLOTSRANGE", bounds[n] ?? 0, (bounds[n + 1] ?? 0) - 1);
      }),
    );
    const followers = await Promise.all(Array.from({ length: 3 * replicas }, startNode));
    const all = [...masters, ...followers];
    for (const { node, bus } of all.slice(1)) {
      await all[0]?.node.command("CLUSTER", "MEET", "127.0.0.1", node.port, bus);
    }
    await until("the Cluster knows its nodes", async () => {
      const infos = await Promise.all(all.map(({ node }) => node.command("CLUSTER", "INFO")));
      const known = `cluster_known_nodes:${all.length}\r`;
      return infos.every((info) => String(info).includes("cluster_state:ok") && String(info).includes(known));
    });
    for (const [n, { node }] of followers.entries()) {
      const id = await masters[n % 3]?.node.command("CLUSTER", "MYID");
      await node.command("CLUSTER", "REPLICATE", String(id));
    }
    const nodes = masters.map(({ node }) => node);
    const serving = () =>
      until("the Cluster serves", async () => {
        const infos = await Promise.all(nodes.map((node) => node.command("CLUSTER", "INFO")));
        return infos.every((info) => String(info).includes("cluster_state:ok"));
      });
    return { nodes, serving };
  });
}

interface Starter {
  (options: RedisServerOptions): Promise<RedisServer>;
  /** Also stops this when the group is stopped. */
  adopt(stop: () => Promise<void>): void;
}

/** Starts several servers; when one fails, or on `stop()`, all end. */
async function together<T extends object>(
  build: (start: Starter) => Promise<T>,
): Promise<T & { stop(): Promise<void> }> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => void (await Promise.all(stops.map((each) => each())));
  const start: Starter = Object.assign(
    async (options: RedisServerOptions) => {
      const server = await startRedis(options);
      stops.push(() => server.stop());
      return server;
    },
    { adopt: (each: () => Promise<void>) => void stops.push(each) },
  );
  try {
    return Object.assign(await build(start), { stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

async function until(what: string, check: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await check().catch(() => false))) {
    if (performance.now() > end) throw new Error(`${what}: not so after ${timeoutMs} ms`);
    await sleep(20);
  }
}
