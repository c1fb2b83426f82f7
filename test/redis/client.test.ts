import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis, type RedisServer } from "../../servers/redis.ts";
import { systemClock } from "../../src/engine/clock.ts";
import { createScript, fromUrl, overClient, RedisOutcomeUnknownError, RedisReplyError } from "../../src/redis/index.ts";
import type { RedisClient } from "../../src/redis/index.ts";
import { LIBRARIES, type UserClient } from "./clients.ts";

const OPTIONS = { clock: systemClock, commandTimeoutMs: 5_000, connectTimeoutMs: 2_000 };
const echo = createScript("redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])");

let server: RedisServer;
before(async () => void (server = await startRedis({ durable: true })));
after(() => server.stop());

interface Way {
  readonly name: string;
  readonly open: (
    timeoutMs?: number,
  ) => Promise<{ redis: RedisClient; user?: UserClient; readonly close: () => Promise<void> }>;
}

const ways: Way[] = [
  ...LIBRARIES.map((library): Way => ({
    name: `a client of ${library.name}`,
    open: async (commandTimeoutMs = 5_000) => {
      const user = await library.single(server.url);
      const redis = overClient(user.client, { ...OPTIONS, commandTimeoutMs });
      await redis.connect();
      const close = async () => {
        await redis.close();
        await user.close();
      };
      return { redis, user, close };
    },
  })),
  ...["ioredis", "redis"].map((library): Way => ({
    name: `a URL through ${library}`,
    open: async (commandTimeoutMs = 5_000) => {
      const redis = await fromUrl(`${server.url}?client=${library}`, { ...OPTIONS, commandTimeoutMs });
      await redis.connect();
      return { redis, close: () => redis.close() };
    },
  })),
];

for (const { name, open } of ways) {
  describe(name, () => {
    test("a command after close is refused at once", async () => {
      const { redis, close } = await open();
      await close();
      const fromMs = performance.now();
      await assert.rejects(redis.command(["ping"]), RedisOutcomeUnknownError);
      assert.ok(performance.now() - fromMs < 1_000, "it does not wait for its time-out");
    });

    test("scripts run, also after SCRIPT FLUSH with many at once", async () => {
      const { redis, close } = await open();
      try {
        assert.equal(await redis.run(echo, ["a"], ["1"]), "1");
        await server.command("SCRIPT", "FLUSH");
        await server.command("CONFIG", "RESETSTAT");
        const replies = await Promise.all(
          Array.from({ length: 50 }, (_, n) => redis.run(echo, [`k${n}`], [String(n)])),
        );
        assert.deepEqual(replies.map(Number), [...Array(50).keys()]);
        const stats = String(await server.command("INFO", "commandstats"));
        assert.match(stats, /cmdstat_eval:calls=1,/, "the source is sent once, not by everybody");
      } finally {
        await close();
      }
    });

    test("an error reply is told apart, with its code", async () => {
      const { redis, close } = await open();
      try {
        await assert.rejects(redis.run(createScript("return redis.call('NOSUCH')"), ["a"], [""]), RedisReplyError);
        await redis.command(["set", "text", "x"]);
        await assert.rejects(redis.command(["lpush", "text", "y"]), { name: "RedisReplyError", code: "WRONGTYPE" });
      } finally {
        await close();
      }
    });

    test("a frozen server: the outcome is unknown in time, afterwards it goes on", async () => {
      const { redis, close } = await open(300);
      try {
        server.freeze();
        const started = performance.now();
        await assert.rejects(redis.command(["set", "late", "1"]), RedisOutcomeUnknownError);
        assert.ok(performance.now() - started < 2_000);
        server.thaw();
        await eventually(async () => (await redis.command(["ping"])) === "PONG");
      } finally {
        server.thaw();
        await close();
      }
    });

    test("a killed server: commands fail or wait, and work again after the restart", async () => {
      const { redis, close } = await open(1_000);
      try {
        await redis.command(["set", "kept", "1"]);
        await server.kill();
        await assert.rejects(redis.command(["get", "kept"]), RedisOutcomeUnknownError);
        await server.restart();
        await eventually(async () => (await redis.command(["get", "kept"])) === "1");
      } finally {
        await server.restart();
        await close();
      }
    });

    test("messages arrive; after a break the subscription stands again and says so", async () => {
      const { redis, close } = await open();
      const messages: string[] = [];
      let subscribed = 0;
      try {
        const subscription = await redis.subscribe("news", {
          message: (text) => messages.push(text),
          subscribed: () => subscribed++,
        });
        assert.equal(subscribed, 1);
        await server.command("PUBLISH", "news", "one");
        await eventually(async () => messages.length === 1);
        await server.command("CLIENT", "KILL", "TYPE", "pubsub");
        await eventually(async () => subscribed === 2);
        await server.command("PUBLISH", "news", "two");
        await eventually(async () => messages.length === 2);
        assert.deepEqual(messages, ["one", "two"]);
        subscription.close();
        await eventually(async () => (await listenersOf("news")) === 0);
      } finally {
        await close();
      }
    });

    test("SCAN finds keys by pattern", async () => {
      const { redis, close } = await open();
      try {
        for (let n = 0; n < 30; n++) await redis.command(["set", `scan:${n}`, "1"]);
        const found = new Set<string>();
        for await (const page of redis.scan("scan:*", 10)) for (const key of page) found.add(key);
        assert.equal(found.size, 30);
      } finally {
        await close();
      }
    });
  });
}

describe("a client that the user hands over", () => {
  for (const library of LIBRARIES) {
    test(`${library.name}: stays open, its options and listeners as they were`, async () => {
      const user = await library.single(server.url);
      try {
        const options = (user.client as { options?: object }).options;
        const before = snapshot(options);
        const listeners = user.client.listenerCount("error");
        const redis = overClient(user.client, OPTIONS);
        await redis.connect();
        await redis.subscribe("channel", { message: () => {}, subscribed: () => {} });
        await redis.runReplicated(echo, ["a"], ["1"], { replicas: 0, waitMs: 100 });
        await redis.close();
        assert.equal((user.client as { options?: object }).options, options);
        assert.deepEqual(snapshot(options), before);
        assert.equal(user.client.listenerCount("error"), listeners);
        await user.ping();
        assert.equal(await listenersOf("channel"), 0);
      } finally {
        await user.close();
      }
    });
  }

  for (const library of LIBRARIES.filter(({ name }) => name.startsWith("ioredis"))) {
    test(`${library.name}: its key prefix is kept`, async () => {
      const user = await library.single(server.url, "app:");
      const redis = overClient(user.client, OPTIONS);
      try {
        await redis.connect();
        await redis.run(echo, ["{prefixed}"], ["1"]);
        assert.equal(await server.command("GET", "app:{prefixed}"), "1");
        await redis.runReplicated(echo, ["{other}"], ["2"], { replicas: 0, waitMs: 100 });
        assert.equal(await server.command("GET", "app:{other}"), "2");
        assert.equal(redis.keyPrefix, "app:");
        const messages: string[] = [];
        await redis.subscribe("plain", { message: (text) => messages.push(text), subscribed: () => {} });
        await server.command("PUBLISH", "plain", "x");
        await eventually(async () => messages.length === 1);
      } finally {
        await redis.close();
        await user.close();
      }
    });
  }
});

test("a server that is not there is reported at once, without the password", async () => {
  for (const library of ["ioredis", "redis"]) {
    const redis = await fromUrl(`redis://user:hush%2Fhush@127.0.0.1:1?client=${library}`, OPTIONS);
    const started = performance.now();
    await assert.rejects(redis.connect(), (error: Error) => {
      assert.match(error.message, /ECONNREFUSED/);
      return !`${error.stack}${JSON.stringify(error)}${String(error.cause)}`.includes("hush");
    });
    assert.ok(performance.now() - started < 2_000);
    await redis.close();
  }
});

test("connections to many servers are made in little time", async () => {
  for (const library of ["ioredis", "redis"]) {
    const open = (port: number): Promise<RedisClient> =>
      fromUrl(`redis://127.0.0.1:${port}?client=${library}`, OPTIONS);
    const clients = [await open(1)];
    const before = process.cpuUsage();
    for (let port = 2; port <= 31; port++) clients.push(await open(port));
    const { user, system } = process.cpuUsage(before);
    assert.ok((user + system) / 30 < 10_000, `${library}: ${(user + system) / 30} µs for each`);
    await Promise.all(clients.map((client) => client.close()));
  }
});

test("a database number", async () => {
  for (const library of ["ioredis", "redis"]) {
    const redis = await fromUrl(`${server.url}/3?client=${library}`, OPTIONS);
    await redis.connect();
    await redis.run(echo, [`db-${library}`], ["1"]);
    assert.equal(await server.command("EXISTS", `db-${library}`), 0);
    await redis.close();
  }
});

async function listenersOf(channel: string): Promise<number> {
  const reply = (await server.command("PUBSUB", "NUMSUB", channel)) as unknown[];
  return Number(reply[1]);
}

function snapshot(options: object | undefined): string {
  return JSON.stringify(options, (_key, value: unknown) => (typeof value === "function" ? "function" : value));
}

async function eventually(check: () => Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await check().catch(() => false))) {
    assert.ok(performance.now() < end, `not so within ${timeoutMs} ms: ${check.toString()}`);
    await sleep(10);
  }
}
