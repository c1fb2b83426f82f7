/**
 * The paused owner, end to end, with real processes and servers: A holds the lock and is stopped past its lease, B takes it
 * and writes, A wakes and writes. Every guard refuses A's write, whatever engine the lock is of.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { killAtExit } from "../../servers/exit-cleanup.ts";
import { startMariadb, type MariadbServer } from "../../servers/mariadb.ts";
import { startPostgres, type PostgresServer } from "../../servers/postgres.ts";
import { startRedis, type RedisServer } from "../../servers/redis.ts";
import { temporaryDirectory } from "../../servers/server-process.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../servers/zookeeper.ts";
import { httpFence, memoryFence } from "../../src/fence/index.ts";
import { connect } from "../../src/index.ts";
import { openThing, type Kind } from "./guarded-thing.ts";

let redis: RedisServer;
let mariadb: MariadbServer;
let postgres: PostgresServer;
let zookeeper: ZooKeeperServer;
const directory = await temporaryDirectory("paused-owner");

before(async () => {
  [redis, mariadb, postgres, zookeeper] = await Promise.all([
    startRedis(),
    startMariadb(),
    startPostgres(),
    startZooKeeper(),
  ]);
});

after(async () => {
  await Promise.all([redis, mariadb, postgres, zookeeper].map((server) => server.stop()));
  await directory.remove();
});

/** Whether the process is stopped by a signal. */
function isStopped(pid: number): boolean {
  return /^\d+ \(.*\) [Tt] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

async function pausedOwner(url: string, kind: Kind, where: string): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "paused-owner.ts"), url, kind, where], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const forget = killAtExit(child);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const exited = once(child, "exit");
  const pid = child.pid ?? 0;
  for (const until = performance.now() + 60_000; !isStopped(pid); await sleep(20)) {
    assert.ok(child.exitCode === null, `A ended before its pause: ${output}`);
    assert.ok(performance.now() < until, "A did not get the lock");
  }

  const thing = await openThing(kind, where);
  const locks = await connect(url, { ttlMs: 10_000 });
  const lock = await locks.acquire("account", { waitMs: 60_000 });
  await thing.enter(lock.token);
  assert.equal(await thing.read(), "first by A");
  await thing.write(lock.token, "by B");

  child.kill("SIGCONT");
  await exited;
  forget();
  const { heldBefore, refused, heldAfter, token } = JSON.parse(output) as Record<string, unknown>;
  assert.equal(heldBefore, true, "A believed that it held the lock, and was right");
  assert.equal(refused, "STALE_TOKEN");
  assert.equal(heldAfter, false, "A knows, now");
  assert.ok(BigInt(String(token)) < lock.token);
  assert.equal(await thing.read(), "by B");
  assert.ok(lock.isHeld());
  await thing.write(lock.token, "again by B");
  await lock.release();
  await locks.close();
  await thing.close();
}

const sqliteUrl = (name: string): string => `sqlite:${directory.path}/${name}.db`;

test("lock in Redis, guard in Redis", () => pausedOwner(redis.url, "redis", redis.url));

test("lock in MariaDB, guard in MariaDB", () => pausedOwner(mariadb.url, "mariadb", mariadb.url));

test("lock in SQLite, guard in SQLite", () =>
  pausedOwner(sqliteUrl("sqlite"), "sqlite", `${directory.path}/application.db`));

test("lock in SQLite, guard in PostgreSQL", () => pausedOwner(sqliteUrl("postgres"), "postgres", postgres.url));

test("lock in ZooKeeper, guard in ZooKeeper", () =>
  pausedOwner(`zookeeper://${zookeeper.address}?sessionTimeoutMs=4000`, "zookeeper", zookeeper.address));

test("lock in Redis, guard in ZooKeeper", async () => {
  const other = await startZooKeeper();
  try {
    await pausedOwner(redis.url, "zookeeper", other.address);
  } finally {
    await other.stop();
  }
});

async function behindHttp(server: Server, url: string): Promise<void> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await pausedOwner(url, "http", `http://127.0.0.1:${(server.address() as AddressInfo).port}/account`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function bodyOf(request: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

test("lock in Redis, guard in front of an HTTP service", async () => {
  let value = "";
  const listener = httpFence().node(async (request, response) => {
    if (request.method === "PUT") value = await bodyOf(request);
    response.end(value);
  });
  await behindHttp(createServer(listener), redis.url);
});

test("lock in SQLite, guard in the memory of a service", async () => {
  const fence = memoryFence({ name: "account" });
  let value = "";
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const token = request.headers["fencing-token"];
      try {
        if (request.method === "PUT") fence.write(BigInt(String(token)), () => (value = body));
        else if (token !== undefined) fence.enter(BigInt(String(token)));
        response.end(value);
      } catch {
        response.writeHead(412).end();
      }
    });
  });
  await behindHttp(server, sqliteUrl("memory"));
});
