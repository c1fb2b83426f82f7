/** The redis engine beside its peers and the raw commands, on one private server, all through ioredis where they can. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startRedis, type RedisServer } from "../../servers/redis.ts";
import { redis } from "../../src/engines/redis/index.ts";
import { connect } from "../../src/index.ts";
import { type Contender, type Floor, loop, type Work } from "../harness.ts";
import { type Lock, type Peer, RIVALS } from "./peers/redis-locks.ts";
import { crowd, handOffs, fairness } from "./processes/crowd.ts";

/** Pollers as somebody in a hurry would set them. */
const TUNED_POLL_MS = 1;
const TTL_MS = 30_000;
const WAITING = 100;
const PROCESSES = 8;
const CONTENDER = join(import.meta.dirname, "processes/redis-contender.ts");
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

/**
 * Locks and unlocks; throws when two are inside at once. Counts pairs, and where several want one name, how often it passes
 * to somebody else: a poller mostly takes back what it has just released.
 */
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
      const shares = Array.from({ length: workers }, () => 0);
      let last = -1;
      let passed = 0;
      return {
        async run(ms) {
          passed = 0;
          const pairs = await loop(ms, workers, async (worker) => {
            await pair(lock, inside, worker % names, () => {
              if (worker !== last) passed++;
              last = worker;
            });
            shares[worker] = (shares[worker] ?? 0) + 1;
          });
          return workers > names ? passed : pairs;
        },
        notes: () => (workers > names ? [fairness("waiter", shares)] : []),
        stop: async () => {
          await stop();
          await server.leave();
        },
      };
    },
  };
}

async function pair(lock: Lock, inside: number[], which: number, entered: () => void): Promise<void> {
  const release = await lock(`bench ${which}`);
  entered();
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

function rivals(names: readonly string[], each: (name: string, open: Open) => Contender): Contender[] {
  return names.map((name) =>
    each(name, async ({ port }) => {
      const open = RIVALS[name];
      if (open === undefined) throw new Error(`no such peer: ${name}`);
      return await open(port, TUNED_POLL_MS);
    }),
  );
}

const POLLERS = ["redlock 5 beta", "redlock-universal", "redis-semaphore", "verrou"];
/** Woken by pub/sub. */
const LISTENER = "simple-redis-mutex";
const WAITERS_FLOORS: readonly Floor[] = [
  ...POLLERS.map((name) => ({ than: name, atLeast: 15 })),
  { than: LISTENER, atLeast: 4 },
];
const TUNED = `pollers ask every ${TUNED_POLL_MS} ms`;

function free(id: string, title: string, workers: number, floors: readonly Floor[]): Work {
  const server = new Server();
  return {
    id,
    title,
    unit: "pairs a second",
    floors,
    contenders: [
      contender(server, "SET NX PX + compare-and-delete", "limit", workers, workers, raw),
      contender(server, "holdfast redis:", "ours", workers, workers, ours),
      ...rivals(Object.keys(RIVALS), (name, open) => contender(server, name, "peer", workers, workers, open)),
    ],
  };
}

/** Above this many waiters in one process the pollers are left out: a round of theirs lasts for minutes. */
const MOST_POLLING = 100;

function contended(waiters: number): Work {
  const server = new Server();
  const peers = waiters > MOST_POLLING ? [LISTENER] : [LISTENER, ...POLLERS];
  return {
    id: `redis-waiters-${waiters}`,
    title: `Redis, ${waiters} waiters on one name in one process (${TUNED})`,
    unit: "hand-offs to somebody else a second",
    floors: WAITERS_FLOORS.filter(({ than }) => peers.includes(than)),
    contenders: [
      contender(server, "SET NX PX + compare-and-delete, one at a time", "limit", 1, 1, raw),
      contender(server, "holdfast redis:", "ours", waiters, 1, ours),
      ...rivals(peers, (name, open) => contender(server, name, "peer", waiters, 1, open)),
    ],
  };
}

function spread(waiters: number): Work {
  const server = new Server();
  const each = (name: string, kind: Contender["kind"]): Contender => ({
    name,
    kind,
    async start() {
      const { port } = await server.enter();
      const words = [name, String(port), String(Math.ceil(waiters / PROCESSES)), String(TUNED_POLL_MS)];
      const running = await crowd(CONTENDER, words, PROCESSES, handOffs);
      return {
        ...running,
        async stop() {
          await running.stop();
          await server.leave();
        },
      };
    },
  });
  return {
    id: `redis-processes-${waiters}`,
    title: `Redis, ${waiters} waiters on one name in ${PROCESSES} processes (${TUNED})`,
    unit: "hand-offs to somebody else a second",
    floors: WAITERS_FLOORS,
    contenders: [
      contender(server, "SET NX PX + compare-and-delete, one at a time", "limit", 1, 1, raw),
      each("holdfast redis:", "ours"),
      ...[LISTENER, ...POLLERS].map((name) => each(name, "peer")),
    ],
  };
}

/** What the server is asked while one holds and a hundred wait. Less is better. */
function waiting(): Work {
  const server = new Server();
  const each = (name: string, kind: Contender["kind"], open: Open): Contender => ({
    name,
    kind,
    async start() {
      const running = await server.enter();
      const { lock, stop } = await open(running);
      const admin = new Redis(running.port);
      return {
        async run(ms) {
          const from = performance.now();
          const release = await lock("crowd");
          const all = Array.from({ length: WAITING }, async () => (await lock("crowd"))());
          await new Promise((resolve) => setTimeout(resolve, 500));
          const before = await commands(admin);
          await new Promise((resolve) => setTimeout(resolve, ms));
          const asked = (await commands(admin)) - before - 1;
          await release();
          await Promise.all(all);
          return (asked / ms) * (performance.now() - from); // the harness divides by the time of all of it
        },
        async stop() {
          await stop();
          admin.disconnect();
          await server.leave();
        },
      };
    },
  });
  return {
    id: "redis-waiting",
    title: `Redis, commands while one holds and ${WAITING} wait (${TUNED}); less is better`,
    unit: "commands a second at the server",
    floors: [],
    contenders: [
      each("holdfast redis:", "ours", ours),
      ...rivals([LISTENER, ...POLLERS], (name, open) => each(name, "peer", open)),
    ],
  };
}

async function commands(client: Redis): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await client.info("stats"))?.[1]);
}

export async function works(): Promise<readonly Work[]> {
  return [
    free("redis-one", "Redis, lock and unlock, one at a time", 1, [{ than: "limit", atLeast: 0.8 }]),
    free("redis-64", "Redis, lock and unlock, 64 names in flight", 64, [{ than: "limit", atLeast: 0.7 }]),
    ...[2, 10, 100, 1000].map(contended),
    spread(100),
    waiting(),
  ];
}
