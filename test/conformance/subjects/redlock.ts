/** The redlock engine under test: on three and on five real Redis servers, through both client libraries. */
import type { Clock } from "../../../src/engine/clock.ts";
import { REDLOCK_TRAITS } from "../../../src/engines/redlock/engine.ts";
import { redlock } from "../../../src/engines/redlock/index.ts";
import { connect, type LeaseOptions, type LockManager } from "../../../src/index.ts";
import type { Subject } from "../../../src/testing/subject.ts";
import { startFaultProxy, type FaultProxy } from "../../../servers/fault-proxy.ts";
import { freePort } from "../../../servers/free-port.ts";
import { startRedis, type RedisServer } from "../../../servers/redis.ts";

/** A server, and the proxy through which everybody reaches it. */
interface Node {
  readonly server: RedisServer;
  readonly proxy: FaultProxy;
}

async function startNode(): Promise<Node> {
  const server = await startRedis();
  return { server, proxy: await startFaultProxy(server.port) };
}

export function redlockSubject(count: number, library: "ioredis" | "redis"): Subject {
  let nodes: readonly Node[] = [];
  const all = <T>(what: (node: Node) => Promise<T> | T): Promise<T[]> =>
    Promise.all(nodes.map(async (node) => await what(node)));
  const urls = (): string[] => nodes.map(({ proxy }) => `redis://${proxy.address}?client=${library}`);
  const open = (clock: Clock | undefined, defaults?: LeaseOptions): Promise<LockManager> =>
    connect(redlock({ urls: urls(), ...TERMS, clock }), defaults);
  return {
    name: `redlock on ${count} servers through ${library}`,
    traits: REDLOCK_TRAITS,
    // A lease lasts longer on the nodes than its holder counts on, by the clock step that may go unnoticed.
    roundingMs: 500,
    start: async () => {
      nodes = await Promise.all(Array.from({ length: count }, startNode));
      await (await connect(redlock({ urls: urls(), ...TERMS, bootstrap: true }))).close();
    },
    stop: async () => {
      await all(async ({ server, proxy }) => {
        await proxy.close();
        await server.stop();
      });
    },
    connect: (defaults) => open(undefined, defaults),
    url: () => `redlock:${urls().join(",")}&nodeTimeoutMs=${TERMS.nodeTimeoutMs}&maxTtlMs=${TERMS.maxTtlMs}`,
    hooks: {
      connectWithClock: open,
      connectNowhere: async () => {
        const ports = await Promise.all(Array.from({ length: count }, freePort));
        return await connect(`redlock:${ports.map((port) => `redis://127.0.0.1:${port}`).join(",")}`);
      },
      freezeServer: async () => void (await all(({ server }) => server.freeze())),
      thawServer: async () => void (await all(({ server }) => server.thaw())),
      cutConnections: async () => void (await all(({ proxy }) => proxy.reset())),
      // One of them, and without its data: the others carry the lock. Always the same, whose vote is missing from then on.
      restartServer: async () => await nodes[0]?.server.restartEmpty(),
      dropBells: async () => {
        await all(async ({ server }) => {
          await server.command("ACL", "SETUSER", "default", "-subscribe");
          await server.command("CLIENT", "KILL", "TYPE", "pubsub");
        });
        return async () => void (await all(({ server }) => server.command("ACL", "SETUSER", "default", "+subscribe")));
      },
      loseReplies: async () => {
        await all(({ proxy }) => proxy.set({ toClient: "drop" }));
        return async () => {
          await all(({ proxy }) => {
            proxy.set({ toClient: "pass" });
            // What was lost stays lost: a reply that belongs to an earlier command must not be taken for a later one's.
            proxy.reset();
          });
        };
      },
      countCommands: async () => {
        const counts = await all(async ({ server }) => {
          const stats = String(await server.command("INFO", "commandstats"));
          return [...stats.matchAll(/^cmdstat_(evalsha|eval):calls=(\d+)/gm)].reduce(
            (sum, [, , n]) => sum + Number(n),
            0,
          );
        });
        return Math.max(...counts);
      },
    },
    whyNot: {
      killServer: "a majority that was away has no vote until an operator says so: a test of its own",
      loseSession: "its leases are its own, not a session's",
    },
  };
}

/** On a busy machine a node is often late by more than the default allows. The kit asks for leases of a day. */
const TERMS = { nodeTimeoutMs: 1_000, maxTtlMs: 86_400_000 };

export const subjects: readonly Subject[] = [
  redlockSubject(3, "ioredis"),
  redlockSubject(3, "redis"),
  redlockSubject(5, "ioredis"),
  redlockSubject(5, "redis"),
];
