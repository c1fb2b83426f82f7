/** The redlock engine on five private servers, beside redlock 4 and 5, redlock-universal and redis-semaphore's RedlockMutex. */
import { spawnSync } from "node:child_process";
import { Redis } from "ioredis";
import { startRedis, type RedisServer } from "../../servers/redis.ts";
import { redlock } from "../../src/engines/redlock/index.ts";
import { connect } from "../../src/index.ts";
import { type Contender, loop, type Running, type Work } from "../harness.ts";
import { PEERS } from "./peers/redlock-libraries.ts";

const NODES = 5;
const IN_FLIGHT = 64;
const TTL_MS = 30_000;
const DELETE_OWN = 'if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("DEL",KEYS[1]) else return 0 end';

/** Five servers for all contenders of a work; the last to stop stops them. */
class Servers {
  #starting: Promise<RedisServer[]> | undefined;
  #users = 0;

  async enter(): Promise<RedisServer[]> {
    this.#users++;
    this.#starting ??= Promise.all(Array.from({ length: NODES }, () => startPinned()));
    return await this.#starting;
  }

  async leave(): Promise<void> {
    if (--this.#users > 0) return;
    const servers = (await this.#starting) ?? [];
    this.#starting = undefined;
    await Promise.all(servers.map((server) => server.stop()));
  }
}

async function startPinned(): Promise<RedisServer> {
  const server = await startRedis();
  spawnSync("taskset", ["-a", "-c", "-p", "0", String(server.pid)]);
  return server;
}

type Start = (clients: readonly Redis[], servers: readonly RedisServer[]) => Promise<Running>;

function contender(servers: Servers, name: string, kind: Contender["kind"], start: Start): Contender {
  return {
    name,
    kind,
    async start() {
      const started = await servers.enter();
      const clients = started.map(({ port }) => new Redis({ host: "127.0.0.1", port }));
      const running = await start(clients, started);
      return {
        run: (ms) => running.run(ms),
        async stop() {
          await running.stop();
          for (const client of clients) client.disconnect();
          await servers.leave();
        },
      };
    },
  };
}

/** What any quorum of leases costs at least: set on all, compare and delete on all. */
function limit(servers: Servers, workers: number): Contender {
  return contender(servers, "SET NX PX on five + compare-and-delete on five", "limit", async (clients) => ({
    run: (ms) =>
      loop(ms, workers, async (worker) => {
        const key = `bare ${worker}`;
        await Promise.all(clients.map((client) => client.set(key, "o", "PX", TTL_MS, "NX")));
        await Promise.all(clients.map((client) => client.eval(DELETE_OWN, 1, key, "o")));
      }),
    stop: async () => {},
  }));
}

function ours(servers: Servers, workers: number): Contender {
  return contender(servers, "holdfast redlock:", "ours", async (_, started) => {
    const urls = started.map(({ url }) => url);
    const locks = await connect(redlock({ urls, bootstrap: true, nodeTimeoutMs: 1_000 }), { ttlMs: TTL_MS });
    return {
      run: (ms) =>
        loop(ms, workers, async (worker) => {
          const lock = await locks.acquire(`name ${worker}`);
          await lock.release();
        }),
      stop: () => locks.close(),
    };
  });
}

function peers(servers: Servers, workers: number): Contender[] {
  return PEERS.map((peer) =>
    contender(servers, peer.name, "peer", async (clients) => {
      const cycle = peer.make(clients, TTL_MS);
      return { run: (ms) => loop(ms, workers, (worker) => cycle(`peer ${worker}`)), stop: async () => {} };
    }),
  );
}

export function works(): Promise<readonly Work[]> {
  return Promise.resolve(
    [1, IN_FLIGHT].map((workers) => {
      const servers = new Servers();
      return {
        id: `redlock-pairs-${workers}`,
        title: `Redlock on five servers, lock + unlock, ${workers === 1 ? "one at a time" : `${workers} names in flight`}`,
        unit: "pairs/s",
        contenders: [limit(servers, workers), ours(servers, workers), ...peers(servers, workers)],
        floors: [{ than: "best peer", atLeast: 1 }],
      };
    }),
  );
}
