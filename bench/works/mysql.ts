/** The mysql engine on a private, durable MariaDB, beside verrou (knex, kysely) and the raw statements of the same server. */
import { spawnSync } from "node:child_process";
import { createPool, type Pool } from "mysql2/promise";
import { startMariadb, type MariadbServer } from "../../servers/mariadb.ts";
import { mysql } from "../../src/engines/mysql/index.ts";
import { connect, type LockManager } from "../../src/index.ts";
import { type Contender, loop, median, type Running, type Work } from "../harness.ts";
import { verrou, type VerrouLocks } from "./peers/verrou-mysql.ts";

const IN_FLIGHT = 64;
const POOLED = 8;
const WAITING = 100;
/** verrou as it comes, and as somebody in a hurry would set it. */
const POLL_MS = 250;
const TUNED_POLL_MS = 5;

/** One server for all contenders of a work; the last to stop stops it. */
class Server {
  #starting: Promise<MariadbServer> | undefined;
  #users = 0;

  async enter(): Promise<MariadbServer> {
    this.#users++;
    this.#starting ??= this.#start();
    return await this.#starting;
  }

  async leave(): Promise<void> {
    if (--this.#users > 0) return;
    const server = await this.#starting;
    this.#starting = undefined;
    await server?.stop();
  }

  async #start(): Promise<MariadbServer> {
    const server = await startMariadb({ disk: true, settings: ["innodb-buffer-pool-size=128M"] });
    spawnSync("taskset", ["-a", "-c", "-p", "0", String(server.pid)]);
    return server;
  }
}

type Start = (server: MariadbServer) => Promise<Running>;

function contender(server: Server, name: string, kind: Contender["kind"], start: Start): Contender {
  return {
    name,
    kind,
    async start() {
      const entered = await server.enter();
      const running = await start(entered).catch(async (error: unknown) => {
        await server.leave();
        throw error;
      });
      return {
        run: (ms) => running.run(ms),
        async stop() {
          await running.stop();
          await server.leave();
        },
      };
    },
  };
}

/** Two single-row durable transactions: what any row lock costs at least. */
function limit(server: Server, workers: number): Contender {
  return contender(server, "one insert + one delete, each durable", "limit", async ({ url }) => {
    const pool = createPool({ uri: url, connectionLimit: Math.min(workers, POOLED) });
    await pool.query(
      "CREATE TABLE IF NOT EXISTS bare (name VARBINARY(255) PRIMARY KEY, owner VARBINARY(32)) ENGINE=InnoDB",
    );
    return {
      run: (ms) =>
        loop(ms, workers, async (worker) => {
          await pool.query(`INSERT INTO bare VALUES ('${worker}', 'o')`);
          await pool.query(`DELETE FROM bare WHERE name = '${worker}' AND owner = 'o'`);
        }),
      stop: () => pool.end(),
    };
  });
}

function ours(server: Server, workers: number): Contender {
  return contender(server, "holdfast mysql:", "ours", async ({ url }) => {
    const locks = await connect(mysql({ url, connections: POOLED }));
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

function peer(server: Server, driver: "knex" | "kysely", workers: number): Contender {
  return contender(server, `verrou (${driver})`, "peer", async ({ url }) => {
    const locks = await verrou(driver, url, Math.min(workers, POOLED), POLL_MS);
    return {
      run: (ms) =>
        loop(ms, workers, async (worker) => {
          const lock = locks.createLock(`name ${worker}`);
          await lock.acquire();
          await lock.release();
        }),
      stop: () => locks.end(),
    };
  });
}

/** Does what the latency is measured of again and again; returns how many would fit into the time at the median latency. */
async function atMedian(ms: number, measure: () => Promise<number>): Promise<number> {
  const from = performance.now();
  const latencies: number[] = [];
  while (performance.now() - from < ms) latencies.push(await measure());
  return (performance.now() - from) / median(latencies);
}

/** Long enough for a waiter to be asleep. Connections and processors are cold afterwards, which is part of every wake-up. */
const ASLEEP_MS = 25;

function fallAsleep(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ASLEEP_MS));
}

/** The floor of a wake-up: three round trips and one commit, one after the other, after the same rest. */
function wakeLimit(server: Server): Contender {
  return contender(server, "three round trips + one commit", "limit", async ({ url }) => {
    const pool: Pool = createPool({ uri: url, connectionLimit: 1 });
    await pool.query(
      "CREATE TABLE IF NOT EXISTS bare (name VARBINARY(255) PRIMARY KEY, owner VARBINARY(32)) ENGINE=InnoDB",
    );
    await pool.query("REPLACE INTO bare VALUES ('wake', '0')");
    let round = 0;
    return {
      run: (ms) =>
        atMedian(ms, async () => {
          await fallAsleep();
          const from = performance.now();
          for (let trip = 0; trip < 3; trip++) await pool.query("DO 1");
          await pool.query(`UPDATE bare SET owner = '${++round}' WHERE name = 'wake'`);
          return performance.now() - from;
        }),
      stop: () => pool.end(),
    };
  });
}

interface Side {
  acquire(): Promise<() => Promise<void>>;
}

/** From the call of release on one side to the lock on the other. */
async function wakeUp(left: Side, right: Side): Promise<number> {
  const release = await left.acquire();
  const waiting = right.acquire().then((next) => ({ next, atMs: performance.now() }));
  await fallAsleep();
  const from = performance.now();
  await release();
  const { next, atMs } = await waiting;
  await next();
  return atMs - from;
}

function ourSide(locks: LockManager): Side {
  return {
    async acquire() {
      const lock = await locks.acquire("wake");
      return () => lock.release();
    },
  };
}

function verrouSide(locks: VerrouLocks): Side {
  return {
    async acquire() {
      const lock = locks.createLock("wake");
      await lock.acquire();
      return () => lock.release();
    },
  };
}

function ourWake(server: Server): Contender {
  return contender(server, "holdfast mysql:", "ours", async ({ url }) => {
    const sides = await Promise.all([connect(mysql({ url })), connect(mysql({ url }))]);
    return {
      run: (ms) => atMedian(ms, () => wakeUp(ourSide(sides[0]), ourSide(sides[1]))),
      stop: async () => void (await Promise.all(sides.map((each) => each.close()))),
    };
  });
}

function verrouWake(server: Server, pollMs: number): Contender {
  return contender(server, `verrou (knex), asking every ${pollMs} ms`, "peer", async ({ url }) => {
    const sides = await Promise.all([verrou("knex", url, 2, pollMs), verrou("knex", url, 2, pollMs)]);
    return {
      run: (ms) => atMedian(ms, () => wakeUp(verrouSide(sides[0]), verrouSide(sides[1]))),
      stop: async () => void (await Promise.all(sides.map((each) => each.end()))),
    };
  });
}

async function questions({ query }: { query: MariadbServer["query"] }): Promise<number> {
  return Number((await query("SHOW GLOBAL STATUS LIKE 'Questions'"))[0]?.["Value"]);
}

/** How many waiters one statement a second can keep waiting: 1.0 is one statement a second for each. */
async function frugality(server: MariadbServer, ms: number): Promise<number> {
  const query: MariadbServer["query"] = (sql) => server.query(sql);
  const before = await questions({ query });
  const from = performance.now();
  await new Promise((resolve) => setTimeout(resolve, Math.max(ms, 3_000)));
  const seconds = (performance.now() - from) / 1_000;
  return (WAITING / (((await questions({ query })) - before) / seconds)) * seconds;
}

function ourWaiters(server: Server): Contender {
  return contender(server, "holdfast mysql:", "ours", async (running) => {
    const [holder, waiter] = await Promise.all([connect(running.url), connect(running.url)]);
    return {
      async run(ms) {
        const lock = await holder.acquire("crowd");
        const waiting = Array.from({ length: WAITING }, () => waiter.acquire("crowd"));
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        const result = await frugality(running, ms);
        await lock.release();
        await Promise.all(waiting.map(async (each) => (await each).release()));
        return result;
      },
      stop: async () => void (await Promise.all([holder.close(), waiter.close()])),
    };
  });
}

function verrouWaiters(server: Server): Contender {
  return contender(server, `verrou (knex), asking every ${POLL_MS} ms`, "peer", async (running) => {
    const locks = await verrou("knex", running.url, POOLED, POLL_MS);
    return {
      async run(ms) {
        const lock = locks.createLock("crowd");
        await lock.acquire();
        const waiting = Array.from({ length: WAITING }, () => {
          const next = locks.createLock("crowd");
          // Its polls deadlock among themselves now and then; who is thrown out does not come back.
          return next.acquire().then(
            () => next.release(),
            () => undefined,
          );
        });
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        const result = await frugality(running, ms);
        await lock.release();
        await Promise.all(waiting);
        return result;
      },
      stop: () => locks.end(),
    };
  });
}

/** One statement a second for each waiter, by definition. */
const oneEach: Contender = {
  name: "one statement a second for each",
  kind: "limit",
  start: async () => ({
    run: async (ms) => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      return ms / 1_000;
    },
    stop: async () => {},
  }),
};

export async function works(): Promise<readonly Work[]> {
  const server = new Server();
  return [
    {
      id: "mysql-one",
      title: "MariaDB, lock and unlock, one at a time",
      unit: "pairs a second",
      contenders: [limit(server, 1), ours(server, 1), peer(server, "knex", 1), peer(server, "kysely", 1)],
      floors: [
        { than: "limit", atLeast: 0.7 },
        { than: "best peer", atLeast: 1 },
      ],
    },
    {
      id: "mysql-many",
      title: `MariaDB, lock and unlock, ${IN_FLIGHT} names in flight over ${POOLED} connections`,
      unit: "pairs a second",
      contenders: [limit(server, IN_FLIGHT), ours(server, IN_FLIGHT), peer(server, "knex", IN_FLIGHT)],
      floors: [
        { than: "limit", atLeast: 0.7 },
        { than: "best peer", atLeast: 1 },
      ],
    },
    {
      id: "mysql-wake",
      title: "MariaDB, wake-up of a waiter in another process",
      unit: "wake-ups a second at the median latency (1 / p50)",
      contenders: [wakeLimit(server), ourWake(server), verrouWake(server, POLL_MS), verrouWake(server, TUNED_POLL_MS)],
      floors: [
        { than: "limit", atLeast: 1 },
        { than: "best peer", atLeast: 1 },
      ],
    },
    {
      id: "mysql-waiting",
      title: `MariaDB, ${WAITING} waiters: how many one statement a second keeps waiting`,
      unit: "waiters for one statement a second",
      contenders: [oneEach, ourWaiters(server), verrouWaiters(server)],
      floors: [
        { than: "limit", atLeast: 1 },
        { than: "best peer", atLeast: 1 },
      ],
    },
  ];
}
