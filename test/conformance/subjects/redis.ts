/** The redis engine under test: both libraries, one server, a Cluster and Sentinel, by URL and over a user's client. */
import { startFaultProxy, type FaultProxy } from "../../../servers/fault-proxy.ts";
import { startRedisCluster, startSentinelRedis } from "../../../servers/redis-topologies.ts";
import { startRedis, type RedisServer } from "../../../servers/redis.ts";
import { systemClock, type Clock } from "../../../src/engine/clock.ts";
import type { Traits } from "../../../src/engine/engine.ts";
import { LeaseEngine } from "../../../src/engine/lease-engine.ts";
import type { LeaseStore } from "../../../src/engine/lease-store.ts";
import { redis, redisStore, type RedisOptions } from "../../../src/engines/redis/index.ts";
import { connect, type LeaseOptions, type LockManager } from "../../../src/index.ts";
import type { FaultHooks, Subject } from "../../../src/testing/subject.ts";
import { LIBRARIES, type Library, type UserClient } from "../../redis/clients.ts";

const TTL_MS = 2_000;
/** Shorter than a lease, so that lost replies are noticed in time. */
const COMMAND_TIMEOUT_MS = 1_200;

export const REDIS_TRAITS: Traits = {
  engine: "redis",
  fair: true,
  shared: true,
  limits: true,
  steal: true,
  minHold: true,
  lease: "lease",
  bells: "push",
  scope: "network",
  survivesRestart: true,
  survivesFailover: false,
  survivesClockJump: false,
};

/** Servers that run, and how to reach them. */
interface Deployment {
  readonly url: string;
  /** All of them, for faults. */
  readonly servers: readonly RedisServer[];
  readonly proxy?: FaultProxy;
  readonly hand: (library: Library) => Promise<UserClient>;
  /** Resolves when they serve (again). */
  readonly serving?: () => Promise<void>;
  stop(): Promise<void>;
}

async function single(): Promise<Deployment> {
  const server = await startRedis({ durable: true });
  const proxy = await startFaultProxy(server.port);
  const url = `redis://${proxy.address}`;
  const stop = async (): Promise<void> => {
    await proxy.close();
    await server.stop();
  };
  return { url, servers: [server], proxy, hand: (library) => library.single(url), stop };
}

async function cluster(): Promise<Deployment> {
  const group = await startRedisCluster({ durable: true });
  const ports = group.nodes.map(({ port }) => port);
  const url = `redis+cluster://${ports.map((port) => `127.0.0.1:${port}`).join(",")}`;
  const hand = (library: Library) => library.cluster(ports);
  return { url, servers: group.nodes, hand, serving: () => group.serving(), stop: () => group.stop() };
}

async function sentinel(): Promise<Deployment> {
  // The kit freezes the master; a failover is another test's.
  const group = await startSentinelRedis({ durable: true, downAfterMs: 120_000 });
  const ports = group.sentinels.map(({ port }) => port);
  const url = `redis+sentinel://${ports.map((port) => `127.0.0.1:${port}`).join(",")}/${group.masterName}`;
  const hand = (library: Library) => library.sentinel(ports, group.masterName);
  return { url, servers: [group.master], hand, stop: () => group.stop() };
}

function redisSubject(name: string, start: () => Promise<Deployment>, reach: string | Library): Subject {
  let deployment: Deployment | undefined;
  let user: UserClient | undefined;
  let deaf = false;
  const library = typeof reach === "string" ? reach : "ioredis";
  const running = (): Deployment => {
    if (deployment === undefined) throw new Error("the servers have not been started");
    return deployment;
  };
  const options = (): RedisOptions =>
    user === undefined ? { url: `${running().url}?client=${library}` } : { client: user.client };
  const open = (clock: Clock, defaults?: LeaseOptions): Promise<LockManager> => {
    const store = redisStore({ ...options(), clock, commandTimeoutMs: COMMAND_TIMEOUT_MS });
    return connect(
      new LeaseEngine(
        deafWhile(store, () => deaf),
        clock,
      ),
      defaults,
    );
  };
  const hooks: Partial<FaultHooks> = {
    connectWithClock: open,
    connectNowhere: () => connect(redis({ url: `redis://127.0.0.1:1?client=${library}` })),
    freezeServer: async () => running().servers.forEach((server) => server.freeze()),
    thawServer: async () => running().servers.forEach((server) => server.thaw()),
    cutConnections: async () => {
      const { proxy, servers } = running();
      if (proxy !== undefined) proxy.reset();
      else await Promise.all(servers.map((server) => cut(server)));
    },
    restartServer: async () => {
      const { servers, serving } = running();
      await Promise.all(servers.map((server) => server.restart()));
      await serving?.();
    },
    killServer: async () => {
      const { servers, serving } = running();
      await Promise.all(servers.map((server) => server.kill()));
      return async () => {
        await Promise.all(servers.map((server) => server.restart()));
        await serving?.();
      };
    },
    dropBells: async () => {
      deaf = true;
      return async () => {
        deaf = false;
      };
    },
    countCommands: async () => {
      const counts = await Promise.all(running().servers.map((server) => scriptCalls(server)));
      return counts.reduce((sum, each) => sum + each, 0);
    },
  };
  return {
    name,
    traits: REDIS_TRAITS,
    async start() {
      deployment = await start();
      if (typeof reach !== "string") user = await deployment.hand(reach);
    },
    async stop() {
      await user?.close();
      await deployment?.stop();
    },
    connect: (defaults) => open(systemClock, defaults),
    url: () => running().url,
    hooks: start === single ? { ...hooks, loseReplies: () => loseReplies(running()) } : hooks,
    ttlMs: TTL_MS,
    whyNot: {
      loseSession: "its leases are its own, not a session's",
      loseReplies: "several servers name each other's addresses: no proxy stands before them",
    },
  };
}

async function loseReplies({ proxy }: Deployment): Promise<() => Promise<void>> {
  proxy?.set({ toClient: "drop" });
  return async () => {
    proxy?.set({ toClient: "pass" });
    // A connection that missed a reply would take the next one for it.
    proxy?.reset();
  };
}

async function cut(server: RedisServer): Promise<void> {
  for (const type of ["normal", "pubsub"]) await server.command("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
}

async function scriptCalls(server: RedisServer): Promise<number> {
  const stats = String(await server.command("INFO", "commandstats"));
  const calls = stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm);
  return [...calls].reduce((sum, each) => sum + Number(each[1]), 0);
}

/** The store, with its hints thrown away while `deaf` says so. */
function deafWhile(store: LeaseStore, deaf: () => boolean): LeaseStore {
  const open = store.open.bind(store);
  store.open = (events) =>
    open({
      granted: (owner, token) => !deaf() && events.granted(owner, token),
      check: (owner) => !deaf() && events.check(owner),
      checkAll: () => !deaf() && events.checkAll(),
    });
  return store;
}

const [ioredis6, ioredis5, redis6, redis5] = LIBRARIES as [Library, Library, Library, Library];

/** By deployment: each is a file of its own, for the time that it takes. */
export const SINGLE: readonly Subject[] = [
  redisSubject("redis, one server, by URL through ioredis", single, "ioredis"),
  redisSubject("redis, one server, by URL through redis", single, "redis"),
];
export const CLUSTER: readonly Subject[] = [
  redisSubject("redis, a Cluster, over a client of ioredis 6", cluster, ioredis6),
  redisSubject("redis, a Cluster, over a client of redis 5", cluster, redis5),
];
export const SENTINEL: readonly Subject[] = [
  redisSubject("redis, Sentinel, over a client of ioredis 5", sentinel, ioredis5),
  redisSubject("redis, Sentinel, over a client of redis 6", sentinel, redis6),
];
export const subjects: readonly Subject[] = [...SINGLE, ...CLUSTER, ...SENTINEL];
