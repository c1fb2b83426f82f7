/** The Redis fence through both libraries, on one server and on a Cluster. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient, createCluster } from "redis";
import { createClient as createClient5 } from "redis5";
import { startRedis, type RedisServer } from "../../servers/redis.ts";
import { startRedisCluster, type RedisCluster } from "../../servers/redis-topologies.ts";
import { redisFence, type IoredisScripting, type NodeRedisScripting, type RedisFence } from "../../src/fence/index.ts";
import { guardCases, refuses, type Guarded } from "./guard-cases.ts";

let server: RedisServer;
let cluster: RedisCluster;
let ioredis: Redis;
let ioredis5: Redis5;
let nodeRedis: ReturnType<typeof createClient>;
let nodeRedis5: ReturnType<typeof createClient5>;
let nodeCluster: ReturnType<typeof createCluster>;

before(async () => {
  [server, cluster] = await Promise.all([startRedis(), startRedisCluster()]);
  ioredis = new Redis(server.url, { keyPrefix: "app:" });
  ioredis5 = new Redis5(server.url);
  nodeRedis = createClient({ url: server.url });
  nodeRedis5 = createClient5({ url: server.url });
  nodeCluster = createCluster({ rootNodes: [{ url: cluster.nodes[0]?.url ?? "" }] });
  for (const client of [nodeRedis, nodeRedis5, nodeCluster]) {
    client.on("error", () => {});
    await client.connect();
  }
});

after(async () => {
  ioredis.disconnect();
  ioredis5.disconnect();
  for (const client of [nodeRedis, nodeRedis5, nodeCluster]) if (client.isOpen) client.destroy();
  await Promise.all([server.stop(), cluster.stop()]);
});

type Client = (IoredisScripting | NodeRedisScripting) & { get(key: string): Promise<unknown> };

function guarded(client: () => Client, prefix: string, epoch: number): Guarded {
  const fence = (): RedisFence => redisFence(client(), { epoch, key: (name) => `${prefix}fence:{${name}}` });
  const key = (name: string): string => `${prefix}{${name}}`;
  return {
    enter: (name, fencing) => fence().enter(name, fencing),
    write: async (name, fencing, value) => {
      assert.equal(await fence().write(name, fencing, ["SET", key(name), value]), "OK");
    },
    read: async (name) => ((await client().get(key(name))) as string | null) ?? undefined,
  };
}

function cases(name: string, client: () => Client): void {
  guardCases(
    name,
    () => guarded(client, name, 0),
    (epoch) => guarded(client, name, epoch),
  );
}

cases("ioredis 6", () => ioredis);
cases("ioredis 5", () => ioredis5);
cases("redis 6", () => nodeRedis);
cases("redis 5", () => nodeRedis5);
cases("redis 6, Cluster", () => nodeCluster);

test("a script runs with its own KEYS and ARGV, and not at all for a stale token", async () => {
  for (const client of [ioredis, nodeRedis] as Client[]) {
    const fence = redisFence(client);
    const increase = "return redis.call('INCRBY', KEYS[1], ARGV[1]) .. ' ' .. #KEYS .. ' ' .. #ARGV -- a comment";
    const name = `script ${"evalSha" in client}`;
    assert.equal(await fence.eval(name, 5n, increase, [`{${name}}`], ["3"]), "3 1 1");
    assert.equal(await fence.eval(name, 6n, increase, [`{${name}}`], ["4"]), "7 1 1");
    const error = await refuses(fence.eval(name, 5n, increase, [`{${name}}`], ["100"]));
    assert.equal(error.seen, 6n);
    assert.equal(await client.get(`{${name}}`), "7");
    await assert.rejects(
      fence.eval(name, 6n, "return redis.call('INCR', KEYS[1], 'too', 'many')", ["k"]),
      /number of args/i,
    );
    assert.deepEqual(await fence.eval(name, 6n, "return {KEYS[1], KEYS[2], ARGV[1]}", ["a", "b"], ["c"]), [
      "evalSha" in client ? "a" : "app:a",
      "evalSha" in client ? "b" : "app:b",
      "c",
    ]);
  }
});

test("a server that has forgotten the script gets it again", async () => {
  const fence = redisFence(nodeRedis);
  await fence.write("flush", 1n, ["SET", "flush", "one"]);
  await server.command("SCRIPT", "FLUSH");
  await fence.write("flush", 1n, ["SET", "flush", "two"]);
  assert.equal(await nodeRedis.get("flush"), "two");
});

test("a fence is kept for ever, or for rememberMs after its last use", async () => {
  await redisFence(nodeRedis).enter("kept", 1n);
  assert.equal(await nodeRedis.pTTL("holdfast:fence:{kept}"), -1);
  const fence = redisFence(nodeRedis, { rememberMs: 60_000 });
  await fence.enter("for a while", 1n);
  const left = await nodeRedis.pTTL("holdfast:fence:{for a while}");
  assert.ok(left > 50_000 && left <= 60_000);
});

test("a key that holds something else is not overwritten", async () => {
  await nodeRedis.set("holdfast:fence:{taken}", "hello");
  await assert.rejects(redisFence(nodeRedis).enter("taken", 1n), /something else/);
  assert.equal(await nodeRedis.get("holdfast:fence:{taken}"), "hello");
});

test("wrong arguments are refused", () => {
  assert.throws(() => redisFence({} as never), { code: "CONFIG" });
  assert.throws(() => redisFence(nodeRedis, { rememberMs: -1 }), { code: "CONFIG" });
});
