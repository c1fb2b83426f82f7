import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { startRedisCluster, startReplicatedRedis, startSentinelRedis } from "../../servers/redis-topologies.ts";
import { startRedis } from "../../servers/redis.ts";

test("a Redis server restarts with its data when durable, empty otherwise", async () => {
  const durable = await startRedis({ durable: true });
  const volatile = await startRedis();
  try {
    for (const server of [durable, volatile]) {
      await server.command("SET", "key", "value");
      const pid = server.pid;
      await server.restart();
      assert.notEqual(server.pid, pid);
    }
    assert.equal(await durable.command("GET", "key"), "value");
    assert.equal(await volatile.command("GET", "key"), null);
    await durable.restartEmpty();
    assert.equal(await durable.command("GET", "key"), null);
  } finally {
    await Promise.all([durable.stop(), volatile.stop()]);
  }
});

test("a frozen Redis server answers after the thaw", async () => {
  const server = await startRedis();
  try {
    server.freeze();
    const reply = server.command("PING");
    assert.equal(await Promise.race([reply, sleep(200, "silence")]), "silence");
    server.thaw();
    assert.equal(await reply, "PONG");
  } finally {
    await server.stop();
  }
});

test("the clock of a Redis server moves both ways", async () => {
  const server = await startRedis({ clock: true });
  const ahead = async () => Number(((await server.command("TIME")) as string[])[0]) - Date.now() / 1000;
  try {
    assert.ok(Math.abs(await ahead()) < 30);
    await server.command("SET", "short", "1", "PX", 60_000);
    await server.setClockOffset(-3_600_000);
    assert.ok(Math.abs((await ahead()) + 3600) < 30);
    await server.setClockOffset(120_000);
    assert.ok(Math.abs((await ahead()) - 120) < 30);
    assert.equal(await server.command("GET", "short"), null);
  } finally {
    await server.stop();
  }
});

test("TLS and users", async () => {
  const rules = "on >secret ~mine:* +get +set +info +client";
  const server = await startRedis({ tls: true, password: "admin", users: { app: rules } });
  const login = { username: "app", password: "secret", retryStrategy: null };
  const trusting = new Redis({ port: server.port, ...login, tls: { ca: server.certificate?.authority ?? "" } });
  const wary = new Redis({ port: server.port, ...login, tls: {}, maxRetriesPerRequest: 0 });
  let refused: Error | undefined;
  wary.on("error", (error) => (refused = error));
  try {
    assert.equal(await trusting.set("mine:a", "1"), "OK");
    await assert.rejects(trusting.set("other", "1"), /NOPERM/);
    await assert.rejects(wary.get("mine:a"));
    assert.match(String(refused), /certificate/);
  } finally {
    trusting.disconnect();
    wary.disconnect();
    await server.stop();
  }
});

test("a master with two replicas: writes arrive, a replica can be promoted", async () => {
  const group = await startReplicatedRedis();
  try {
    await group.master.command("SET", "key", "value");
    assert.equal(await group.master.command("WAIT", 2, 5_000), 2);
    const [replica] = group.replicas;
    assert.ok(replica);
    await group.master.kill();
    await replica.promote();
    assert.equal(await replica.command("GET", "key"), "value");
    assert.equal(await replica.command("SET", "key", "more"), "OK");
  } finally {
    await group.stop();
  }
});

test("Sentinel fails over to a replica", async () => {
  const group = await startSentinelRedis();
  try {
    assert.equal(await group.masterPort(), group.master.port);
    await group.master.kill();
    const end = performance.now() + 20_000;
    while ((await group.masterPort()) === group.master.port) {
      assert.ok(performance.now() < end, "no failover within 20 s");
      await sleep(50);
    }
    const port = await group.masterPort();
    const promoted = group.replicas.find((replica) => replica.port === port);
    assert.ok(promoted);
  } finally {
    await group.stop();
  }
});

test("a Cluster of three masters redirects and serves", async () => {
  const cluster = await startRedisCluster();
  const client = new Redis.Cluster(cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port })));
  try {
    for (const key of ["a", "b", "c", "d"]) assert.equal(await client.set(key, key), "OK");
    const [first] = cluster.nodes;
    await assert.rejects(async () => {
      for (const key of ["a", "b", "c", "d"]) await first?.command("GET", key);
    }, /MOVED/);
  } finally {
    client.disconnect();
    await cluster.stop();
  }
});
