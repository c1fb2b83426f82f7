/** Every client library and version that is supported, behind one way to make and to close a user's client. */
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster as Cluster6, Redis as Redis6 } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import * as nodeRedis6 from "redis";
import * as nodeRedis5 from "redis5";
import type { AnyRedisClient } from "../../src/redis/index.ts";

export interface UserClient {
  readonly client: AnyRedisClient;
  /** Still usable by its user. */
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

export interface Library {
  readonly name: string;
  readonly single: (url: string, keyPrefix?: string) => Promise<UserClient>;
  readonly cluster: (ports: readonly number[]) => Promise<UserClient>;
  readonly sentinel: (ports: readonly number[], name: string) => Promise<UserClient>;
}

const host = "127.0.0.1";
const quiet = () => {};

const ioredis = (name: string, Redis: typeof Redis6, Cluster: typeof Cluster6): Library => {
  const use = (client: InstanceType<typeof Redis6> | InstanceType<typeof Cluster6>): UserClient => {
    client.on("error", quiet);
    return {
      client,
      ping: () => client.ping(),
      close: async () => {
        client.disconnect();
        await sleep(1);
      },
    };
  };
  return {
    name,
    single: async (url, keyPrefix = "") => use(new Redis(url, { keyPrefix })),
    cluster: async (ports) => use(new Cluster(ports.map((port) => ({ host, port })))),
    sentinel: async (ports, name) => use(new Redis({ sentinels: ports.map((port) => ({ host, port })), name })),
  };
};

const nodeRedis = (name: string, library: typeof nodeRedis6): Library => ({
  name,
  single: async (url) => {
    const client = library.createClient({ url });
    client.on("error", quiet);
    await client.connect();
    return { client, ping: () => client.ping(), close: async () => client.destroy() };
  },
  cluster: async (ports) => {
    const cluster = library.createCluster({ rootNodes: ports.map((port) => ({ socket: { host, port } })) });
    cluster.on("error", quiet);
    await cluster.connect();
    return { client: cluster, ping: () => cluster.get("ping"), close: async () => cluster.destroy() };
  },
  sentinel: async (ports, name) => {
    const sentinelRootNodes = ports.map((port) => ({ host, port }));
    const sentinel = library.createSentinel({ name, sentinelRootNodes, scanInterval: 500 });
    sentinel.on("error", quiet);
    await sentinel.connect();
    return { client: sentinel, ping: () => sentinel.get("ping"), close: async () => sentinel.destroy() };
  },
});

export const LIBRARIES: readonly Library[] = [
  ioredis("ioredis 6", Redis6, Cluster6),
  ioredis("ioredis 5", Redis5 as unknown as typeof Redis6, Cluster5 as unknown as typeof Cluster6),
  nodeRedis("redis 6", nodeRedis6),
  nodeRedis("redis 5", nodeRedis5 as unknown as typeof nodeRedis6),
];

// The types of every version fit the structural ones: checked by the compiler, never run.
export const typesFit = (
  a: Redis5 | Redis6 | Cluster5 | Cluster6,
  b: ReturnType<typeof nodeRedis5.createClient> | ReturnType<typeof nodeRedis6.createClient>,
  c: ReturnType<typeof nodeRedis5.createCluster> | ReturnType<typeof nodeRedis6.createCluster>,
  d: ReturnType<typeof nodeRedis5.createSentinel> | ReturnType<typeof nodeRedis6.createSentinel>,
): AnyRedisClient[] => [a, b, c, d];
