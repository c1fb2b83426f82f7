/**
 * `npm run bench -- costs`: what is not a rate. What a waiter costs in the process and in the engine, ten thousand of them
 * on one name, a hundred thousand names held at once, and what `holdfast run` adds to a start.
 *
 * Each engine is measured in a process of its own (`node bench/costs.ts ENGINE`), whose heap has known no other.
 */
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Redis } from "ioredis";
import { startRedis } from "../servers/redis.ts";
import { connect } from "../src/index.ts";
import { median } from "./harness.ts";

export interface Cost {
  readonly engine: string;
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** At most this, where there is a floor. */
  readonly atMost?: number;
}

interface Store {
  readonly url: string;
  /** What the engine keeps, in bytes. */
  readonly bytes?: () => Promise<number>;
  stop(): Promise<void>;
}

const WAITERS = 10_000;
const NAMES = 100_000;
const IN_FLIGHT = 500;
const TTL_MS = 30_000;
const WATCHED_MS = 30_000;
const STARTS = 15;
const MAIN = join(import.meta.dirname, "../dist/cli/main.cjs");

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "holdfast-costs-"));
}

const STORES: Readonly<Record<string, () => Promise<Store>>> = {
  memory: () => Promise.resolve({ url: "memory:", stop: () => Promise.resolve() }),
  sqlite() {
    const folder = temporaryFolder();
    const file = join(folder, "locks.db");
    return Promise.resolve({
      url: `sqlite:${file}`,
      bytes: () => Promise.resolve(statSync(file).size + statSync(`${file}-wal`).size),
      stop: async () => rmSync(folder, { recursive: true }),
    });
  },
  async redis() {
    const server = await startRedis();
    if (cpus().length > 1) spawnSync("taskset", ["-pc", "0", String(server.pid)]);
    const admin = new Redis(server.port);
    return {
      url: `redis://127.0.0.1:${server.port}`,
      bytes: async () => Number(/used_memory:(\d+)/.exec(await admin.info("memory"))?.[1]),
      async stop() {
        admin.disconnect();
        await server.stop();
      },
    };
  },
};

/** Ten thousand waiters on one name in one process: what each costs, and how fast they are served. */
async function crowd(engine: string, { url, bytes }: Store): Promise<Cost[]> {
  const locks = await connect(url);
  const holder = await locks.acquire("crowd");
  const [heap, kept, from] = [heapBytes(), await bytes?.(), performance.now()];
  let inside = 0;
  const waiting = Array.from({ length: WAITERS }, async () => {
    const lock = await locks.acquire("crowd");
    if (++inside > 1) throw new Error(`${engine}: two are inside at once`);
    inside--;
    await lock.release();
  });
  while ((await locks.query({ prefix: "crowd", limit: WAITERS + 1 })).pending.length < WAITERS) await sleep(50);
  const queuedMs = performance.now() - from;
  const costs: Cost[] = [
    { engine, what: "a waiter, in the process", value: (heapBytes() - heap) / WAITERS, unit: "bytes" },
    { engine, what: "10,000 waiters stand in the queue after", value: queuedMs / 1_000, unit: "s" },
  ];
  if (bytes !== undefined && kept !== undefined) {
    costs.push({ engine, what: "a waiter, in the engine", value: ((await bytes()) - kept) / WAITERS, unit: "bytes" });
  }
  const served = performance.now();
  await holder.release();
  await Promise.all(waiting);
  const rate = (WAITERS / (performance.now() - served)) * 1_000;
  costs.push({ engine, what: "10,000 waiters on one name", value: rate, unit: "hand-offs a second" });
  await locks.close();
  return costs;
}

/** A hundred thousand names held by one process, over one TTL. */
async function manyNames(engine: string, { url }: Store): Promise<Cost[]> {
  const locks = await connect(url, { ttlMs: TTL_MS });
  const heap = heapBytes();
  const from = performance.now();
  const held: { isHeld(): boolean; release(): Promise<void> }[] = [];
  let next = 0;
  const take = async (): Promise<void> => {
    while (next < NAMES) held.push(await locks.acquire(`name ${next++}`));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, take));
  const takenMs = performance.now() - from;
  const perLock = (heapBytes() - heap) / NAMES;
  const before = performance.eventLoopUtilization();
  await sleep(WATCHED_MS);
  const { utilization } = performance.eventLoopUtilization(before);
  const lost = held.filter((lock) => !lock.isHeld()).length;
  if (lost > 0) throw new Error(`${engine}: ${lost} of ${NAMES} locks were lost`);
  for (let at = 0; at < held.length; at += IN_FLIGHT) {
    await Promise.all(held.slice(at, at + IN_FLIGHT).map((lock) => lock.release()));
  }
  await locks.close();
  const what = "100,000 names held by one process, TTL 30 s";
  return [
    { engine, what: `${what}: event loop busy`, value: utilization * 100, unit: "%", atMost: 20 },
    { engine, what: `${what}: each`, value: perLock, unit: "bytes" },
    { engine, what: `${what}: taken in`, value: takenMs / 1_000, unit: "s" },
  ];
}

/** What `holdfast run` adds to a start, and the memory that it takes while COMMAND runs. */
function commandLine(): Cost[] {
  const folder = temporaryFolder();
  const run = ["run", "x", "--url", `sqlite:${join(folder, "locks.db")}`, "--"];
  const timed = (words: readonly string[]): number => {
    const from = performance.now();
    const { status } = spawnSync(process.execPath, words, { stdio: "ignore" });
    if (status !== 0) throw new Error(`${words.join(" ")} ended with ${String(status)}; has it been built?`);
    return performance.now() - from;
  };
  const rounds = Array.from({ length: STARTS }, () => [timed(["-e", "0"]), timed([MAIN, ...run, "true"])] as const);
  const plain = median(rounds.map(([bare]) => bare));
  const added = median(rounds.map(([bare, whole]) => whole - bare));
  const { stdout } = spawnSync(process.execPath, [MAIN, ...run, "sh", "-c", "cat /proc/$PPID/status"], {
    encoding: "utf8",
  });
  rmSync(folder, { recursive: true });
  const kibibytes = Number(/VmRSS:\s*(\d+)/.exec(stdout)?.[1]);
  const engine = "holdfast run, sqlite";
  return [
    { engine, what: "`node -e 0`, for comparison", value: plain, unit: "ms" },
    { engine, what: "`holdfast run x -- true` takes longer by", value: added, unit: "ms", atMost: 40 },
    { engine, what: "memory while COMMAND runs", value: kibibytes / 1024, unit: "MiB" },
  ];
}

/** All of one engine, in this process. */
async function costsOf(engine: string): Promise<Cost[]> {
  const store = await STORES[engine]?.();
  if (store === undefined) throw new Error(`no such engine: ${engine}; there are ${Object.keys(STORES).join(", ")}`);
  try {
    return [...(await crowd(engine, store)), ...(await manyNames(engine, store))];
  } finally {
    await store.stop();
  }
}

export async function costs(progress: (text: string) => void): Promise<readonly Cost[]> {
  progress("holdfast run");
  const found = commandLine();
  for (const engine of Object.keys(STORES)) {
    progress(`${engine}: ${WAITERS} waiters, ${NAMES} names`);
    const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), engine]);
    found.push(...(JSON.parse(stdout) as Cost[]));
  }
  return found;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  console.log(JSON.stringify(await costsOf(process.argv[2] ?? "memory")));
}
