/** The redis engine beside its peers and the raw commands, on one private server, all through ioredis where they can. */
import { spawnSync } from "node:child_process";
import { Redis } from "ioredis";
import { startRedis, type RedisServer } from "../../servers/redis.ts";
import { redis } from "../../src/engines/redis/index.ts";
import { connect } from "../../src/index.ts";
import { type Contender, type Floor, loop, type Work } from "../harness.ts";
import {
  redisSemaphore,
  redlock,
  redlockUniversal,
  simpleRedisMutex,
  verrouRedis,
  type Lock,
  type Peer,
} from "./peers/redis-locks.ts";

/** Pollers as somebody in a hurry would set them. */
const TUNED_POLL_MS = 1;
const TTL_MS = 30_000;
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** One server for all contenders of a work; the last to stop stops it. */
class Server {
  #starting: Promise<RedisServer> | undefined;
  #users = 0;

  async enter(): Promise<RedisServer> {
    this.#users++;
    this.#starting ??= startRedis().then((server) => {
      spawnSync("taskset", ["-pc", "0", String(server.pid)]);
      return server;
    });
    return await this.#starting;
  }

  async leave(): Promise<void> {
    if (--this.#users === 0) await (await this.#starting)?.stop();
  }
}

type Open = (server: RedisServer) => Promise<Peer>;

/** Locks and unlocks; throws when two are inside at once. */
function contender(
  server: Server,
  name: string,
  kind: Contender["kind"],
  workers: number,
  names: number,
  open: Open,
): Contender {
  return {
    name,
    kind,
    async start() {
      const { lock, stop } = await open(await server.enter());
      const inside = Array.from({ length: names }, () => 0);
      return {
        run: (ms) => loop(ms, workers, (worker) => pair(lock, inside, worker % names)),
        stop: async () => {
          await stop();
          await server.leave();
        },
      };
    },
  };
}

async function pair(lock: Lock, inside: number[], which: number): Promise<void> {
  const release = await lock(`bench ${which}`);
  inside[which] = (inside[which] ?? 0) + 1;
  if (inside[which] !== 1) throw new Error("two are inside at once");
  inside[which]--;
  await release();
}

const ours: Open = async ({ port }) => {
  const client = new Redis(port);
  const locks = await connect(redis({ client }));
  return {
    lock: async (name) => {
      const held = await locks.acquire(name);
      return () => held.release();
    },
    stop: async () => {
      await locks.close();
      client.disconnect();
    },
  };
};

/** SET NX PX and compare-and-delete: no queue, no token, nobody waits. */
const raw: Open = async ({ port }) => {
  const client = new Redis(port);
  const sha = String(await client.script("LOAD", RELEASE));
  let n = 0;
  return {
    lock: async (name) => {
      const owner = `owner ${n++}`;
      await client.set(name, owner, "PX", TTL_MS, "NX");
      return () => client.evalsha(sha, 1, name, owner);
    },
    stop: async () => client.disconnect(),
  };
};

function free(id: string, title: string, workers: number, floors: readonly Floor[]): Work {
  const server = new Server();
  const peer = (name: string, open: (port: number) => Promise<Peer>) =>
    contender(server, name, "peer", workers, workers, ({ port }) => open(port));
  return {
    id,
    title,
    unit: "pairs a second",
    floors,
    contenders: [
      contender(server, "SET NX PX + compare-and-delete", "limit", workers, workers, raw),
      contender(server, "holdfast redis:", "ours", workers, workers, ours),
      peer("redlock 4", (port) => redlock(4, port, TUNED_POLL_MS)),
      peer("redlock 5 beta", (port) => redlock(5, port, TUNED_POLL_MS)),
      peer("redlock-universal", (port) => redlockUniversal(port, TUNED_POLL_MS)),
      peer("redis-semaphore", (port) => redisSemaphore(port, TUNED_POLL_MS)),
      peer("verrou", (port) => verrouRedis(port, TUNED_POLL_MS)),
      peer("simple-redis-mutex", simpleRedisMutex),
    ],
  };
}

function contended(waiters: number): Work {
  const server = new Server();
  const tuned = `asking every ${TUNED_POLL_MS} ms`;
  const peer = (name: string, open: (port: number) => Promise<Peer>) =>
    contender(server, name, "peer", waiters, 1, ({ port }) => open(port));
  const pollers: Contender[] = [
    peer(`redlock 5 beta, ${tuned}`, (port) => redlock(5, port, TUNED_POLL_MS)),
    peer(`redlock-universal, ${tuned}`, (port) => redlockUniversal(port, TUNED_POLL_MS)),
    peer(`redis-semaphore, ${tuned}`, (port) => redisSemaphore(port, TUNED_POLL_MS)),
    peer(`verrou, ${tuned}`, (port) => verrouRedis(port, TUNED_POLL_MS)),
  ];
  const floors = pollers.map(({ name }) => ({ than: name, atLeast: 15 }));
  return {
    id: `redis-waiters-${waiters}`,
    title: `Redis, ${waiters} waiters on one name in one process`,
    unit: "hand-offs a second",
    floors: [...floors, { than: "simple-redis-mutex", atLeast: 4 }],
    contenders: [
      contender(server, "SET NX PX + compare-and-delete, one at a time", "limit", 1, 1, raw),
      contender(server, "holdfast redis:", "ours", waiters, 1, ours),
      peer("simple-redis-mutex", simpleRedisMutex),
      ...pollers,
    ],
  };
}

export async function works(): Promise<readonly Work[]> {
  const one = [{ than: "limit", atLeast: 0.8 }];
  const many = [{ than: "limit", atLeast: 0.7 }];
  return [
    free("redis-one", "Redis, lock and unlock, one at a time", 1, one),
    free("redis-64", "Redis, lock and unlock, 64 names in flight", 64, many),
    ...[2, 10, 100, 1000].map(contended),
  ];
}
