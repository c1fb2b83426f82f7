import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedisCluster, startReplicatedRedis, startSentinelRedis } from "../../servers/redis-topologies.ts";
import type { RedisCluster, ReplicatedRedis } from "../../servers/redis-topologies.ts";
import { startRedis } from "../../servers/redis.ts";
import { systemClock } from "../../src/engine/clock.ts";
import {
  createScript,
  fromUrl,
  overClient,
  RedisOutcomeUnknownError,
  type RedisClient,
} from "../../src/redis/index.ts";
import { LIBRARIES, type UserClient } from "./clients.ts";

const OPTIONS = { clock: systemClock, commandTimeoutMs: 2_000, connectTimeoutMs: 1_000 };
const set = createScript("redis.call('SET', KEYS[1], ARGV[1]) return 'done'");
const NAMES = ["a", "b", "c", "d", "e", "f"];

interface Way {
  readonly name: string;
  readonly open: () => Promise<{ redis: RedisClient; readonly close: () => Promise<void> }>;
}

function ways(url: () => string, user: (library: (typeof LIBRARIES)[number]) => Promise<UserClient>): Way[] {
  return [
    ...LIBRARIES.map((library) => ({
      name: `a client of ${library.name}`,
      open: async () => {
        const handed = await user(library);
        const redis = overClient(handed.client, OPTIONS);
        await redis.connect();
        return {
          redis,
          close: async () => {
            await redis.close();
            await handed.close();
          },
        };
      },
    })),
    ...["ioredis", "redis"].map((library) => ({
      name: `a URL through ${library}`,
      open: async () => {
        const redis = await fromUrl(`${url()}?client=${library}`, OPTIONS);
        await redis.connect();
        return { redis, close: () => redis.close() };
      },
    })),
  ];
}

describe("a Cluster", () => {
  let cluster: RedisCluster;
  before(async () => void (cluster = await startRedisCluster()));
  after(() => cluster.stop());
  const ports = () => cluster.nodes.map(({ port }) => port);

  for (const { name, open } of ways(
    () =>
      `redis+cluster://${ports()
        .map((port) => `127.0.0.1:${port}`)
        .join(",")}`,
    (library) => library.cluster(ports()),
  )) {
    test(`${name}: scripts go to the node of their key, messages cross nodes, SCAN sees all`, async () => {
      const { redis, close } = await open();
      try {
        assert.equal(redis.cluster, true);
        for (const each of NAMES) assert.equal(await redis.run(set, [`{${each}}`, `{${each}}:q`], [each]), "done");
        const used = new Set(NAMES.map((each) => Math.floor(redis.slotOf(each) / 5461)));
        assert.ok(used.size > 1, "the names fall on several nodes");
        const found = new Set<string>();
        for await (const page of redis.scan("{*}")) for (const key of page) found.add(key);
        assert.deepEqual(
          [...found].sort(),
          NAMES.map((each) => `{${each}}`),
        );

        const messages: string[] = [];
        await redis.subscribe("news", { message: (text) => messages.push(text), subscribed: () => {} });
        for (const [n, node] of cluster.nodes.entries()) await node.command("PUBLISH", "news", n);
        await eventually(async () => messages.length === 3);

        const waited = await redis.runReplicated(set, ["{a}"], ["x"], { replicas: 0, waitMs: 100 });
        assert.equal(waited.reply, "done");
        assert.equal((await redis.onMasters(["dbsize"])).length, 3);
      } finally {
        await close();
      }
    });
  }
});

test("every client reaches the master through Sentinels and follows a failover", { timeout: 120_000 }, async () => {
  const group = await startSentinelRedis();
  const ports = group.sentinels.map(({ port }) => port);
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
  const all = await Promise.all(
    ways(
      () => `redis+sentinel://${hosts}/${group.masterName}`,
      (library) => library.sentinel(ports, group.masterName),
    ).map(async ({ name, open }) => ({ name, ...(await open()), subscribed: 0, messages: 0 })),
  );
  try {
    for (const one of all) {
      assert.equal(await one.redis.run(set, [one.name], ["1"]), "done");
      await one.redis.subscribe("news", { message: () => one.messages++, subscribed: () => one.subscribed++ });
    }
    await group.master.kill();
    await eventually(async () => (await group.masterPort()) !== group.master.port, 30_000);
    const now = await group.masterPort();
    const promoted = group.replicas.find(({ port }) => port === now);
    for (const { name, redis } of all) {
      await eventually(async () => (await redis.run(set, [name], ["2"])) === "done", 30_000, name);
      assert.equal(await promoted?.command("GET", name), "2");
    }
    for (const one of all) {
      await eventually(async () => one.subscribed >= 2, 30_000, one.name);
      await eventually(async () => {
        await promoted?.command("PUBLISH", "news", "hello");
        return one.messages > 0;
      });
    }
  } finally {
    await Promise.all(all.map(({ close }) => close()));
    await group.stop();
  }
});

describe("replicas", () => {
  let group: ReplicatedRedis;
  before(async () => void (group = await startReplicatedRedis()));
  after(() => group.stop());

  for (const { name, open } of ways(
    () => group.master.url,
    (library) => library.single(group.master.url),
  )) {
    test(`${name}: WAIT counts the replicas that have the write, not those that had earlier ones`, async () => {
      const { redis, close } = await open();
      try {
        const wait = { replicas: 2, waitMs: 3_000 };
        const many = await Promise.all(
          Array.from({ length: 50 }, (_, n) => redis.runReplicated(set, [`key${n}`], ["1"], wait)),
        );
        assert.ok(many.every(({ reply, replicas }) => reply === "done" && replicas === 2));
        for (const replica of group.replicas) replica.freeze();
        const lonely = await redis.runReplicated(set, ["key"], ["2"], { replicas: 1, waitMs: 100 });
        assert.equal(lonely.replicas, 0);
        for (const replica of group.replicas) replica.thaw();
        await group.master.command("SCRIPT", "FLUSH");
        const again = await redis.runReplicated(set, ["key"], ["3"], wait);
        assert.deepEqual(again, { reply: "done", replicas: 2 });
      } finally {
        for (const replica of group.replicas) replica.thaw();
        await close();
      }
    });
  }
});

describe("TLS and login", () => {
  for (const library of ["ioredis", "redis"]) {
    test(`${library}: a private authority is trusted when it is named, refused otherwise`, async () => {
      const server = await startRedis({ tls: true, users: { app: "on >s3cret/word ~* &* +@all" } });
      const url = `rediss://app:s3cret%2Fword@127.0.0.1:${server.port}`;
      const open = async (target: string) => fromUrl(`${target}client=${library}`, OPTIONS);
      try {
        const trusting = await open(`${url}?ca=${server.certificate?.authorityFile ?? ""}&`);
        await trusting.connect();
        assert.equal(await trusting.run(set, ["key"], ["1"]), "done");
        await trusting.close();
        const wary = await open(`${url}?`);
        await assert.rejects(wary.connect(), /certificate/);
        await wary.close();
        const wrong = await open(`${url.replace("word", "w0rd")}?ca=${server.certificate?.authorityFile ?? ""}&`);
        await assert.rejects(wrong.connect(), (error: Error) => {
          assert.match(error.message, /WRONGPASS/);
          return !`${error.stack}${JSON.stringify(error)}`.includes("s3cret");
        });
        await wrong.close();
      } finally {
        await server.stop();
      }
    });
  }
});

test("a frozen master of a Sentinel group is given up by a client of our own", { timeout: 60_000 }, async () => {
  const group = await startSentinelRedis();
  const hosts = group.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const redis = await fromUrl(`redis+sentinel://${hosts}/${group.masterName}?client=ioredis`, {
    ...OPTIONS,
    commandTimeoutMs: 500,
  });
  try {
    await redis.connect();
    group.master.freeze();
    await assert.rejects(redis.command(["set", "a", "1"]), RedisOutcomeUnknownError);
    await eventually(async () => (await redis.command(["set", "a", "2"])) === "OK", 30_000);
    assert.notEqual(await group.masterPort(), group.master.port);
  } finally {
    group.master.thaw();
    await redis.close();
    await group.stop();
  }
});

async function eventually(check: () => Promise<boolean>, timeoutMs = 10_000, who = ""): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await check().catch(() => false))) {
    assert.ok(performance.now() < end, `${who} not so within ${timeoutMs} ms: ${check.toString()}`);
    await sleep(20);
  }
}
