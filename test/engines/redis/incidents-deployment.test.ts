/** Public incidents: memory, tokens, replicas, Clusters, processes. The numbers are those of docs/incidents.md. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { test } from "node:test";
import { createClient } from "redis";
import { startFaultProxy } from "../../../servers/fault-proxy.ts";
import { startRedisCluster, startReplicatedRedis } from "../../../servers/redis-topologies.ts";
import { fromUrl, redis as engine } from "../../../src/engines/redis/index.ts";
import { ConfigError, EngineUnavailableError, connect, type LockManager } from "../../../src/index.ts";
import { eventually, incident, locksOn, pending, server, sleep, within } from "./stage.ts";

test(
  "incident 6: no timer of ours keeps a process alive: not a renewal under way, not an open connection, not a dead server",
  incident(async (t) => {
    const redis = await server(t);
    for (const manner of ["close", "leave open", "held", "held, server dies"]) {
      const program = fork(new URL("short-work.ts", import.meta.url), [redis.url, manner], { silent: true });
      let errors = "";
      program.stderr?.setEncoding("utf8").on("data", (text: string) => (errors += text));
      const exited = new Promise<number | null>((resolve) => program.once("exit", resolve));
      if (manner === "held, server dies") {
        await new Promise((resolve) => program.once("message", resolve));
        await redis.kill();
        program.send("dead");
      }
      t.after(() => program.kill("SIGKILL"));
      assert.equal(await within(`the end of "${manner}"`, 20_000, exited), 0, errors);
    }
  }),
);

test(
  "incident 21: after 10,000 names have been used and left, their keys go; tokens grow all the same",
  { timeout: 120_000 },
  incident(async (t) => {
    const redis = await server(t);
    const before = await redis.command("DBSIZE");
    const locks = await locksOn(t, redis, { rememberMs: 3_000 });
    const first = await locks.acquire("name-0");
    await first.release();
    let next = 0;
    const use = async (): Promise<void> => {
      while (next < 10_000) await locks.request(`name-${next++}`, { ttlMs: 1_000 }, () => {});
    };
    await Promise.all(Array.from({ length: 64 }, use));
    // Some with a queue, which has keys of its own; some whose holders never came back.
    const holders = await Promise.all(
      Array.from({ length: 50 }, (_, n) => locks.acquire(`busy-${n}`, { ttlMs: 1_000 })),
    );
    const waiting = holders.map(({ name }) => locks.acquire(name, { ttlMs: 1_000 }));
    await eventually("they wait", async () => (await pending(locks, "busy-")) === 50);
    await Promise.all(holders.map((lock) => lock.release()));
    await Promise.all(waiting.map(async (each) => (await each).release()));
    await eventually("the keys are gone", async () => (await redis.command("DBSIZE")) === before, 20_000);
    const again = await locks.acquire("name-0");
    assert.ok(again.token > first.token);
    await again.release();
  }),
);

test(
  "incident 57: tokens grow across expiry, forgetting, a restart with data and a clock set back within rememberMs",
  incident(async (t) => {
    const redis = await server(t, { clock: true, durable: true });
    const locks = await locksOn(t, redis, { commandTimeoutMs: 1_000 });
    const forgetful = await locksOn(t, redis, { rememberMs: 100, prefix: "forgetful:" });
    let last = 0n;
    const grows = async (why: string, manager = locks): Promise<void> => {
      const lock = await within(why, 10_000, manager.acquire("token"));
      assert.ok(lock.token > last, `${why}: ${lock.token} after ${last}`);
      last = lock.token;
      await lock.release();
    };
    await grows("first");
    await grows("again");
    await redis.setClockOffset(-600_000);
    await grows("clock set back by ten minutes");
    await grows("and again");
    await redis.restart();
    await eventually("back", async () =>
      locks.query().then(
        () => true,
        () => false,
      ),
    );
    await grows("restarted with its data, clock still back");
    await redis.setClockOffset(0);
    await grows("clock right again");
    last = 0n;
    await grows("another prefix", forgetful);
    await sleep(400);
    assert.equal(await redis.command("EXISTS", "forgetful:{token}"), 0);
    await grows("forgotten", forgetful);
  }),
);

test(
  "incident 57: tokens grow across a failover that lost the last increments",
  incident(async (t) => {
    const group = await startReplicatedRedis(1);
    t.after(() => group.stop());
    const locks = await locksOn(t, group.master);
    const replica = group.replicas[0];
    assert.ok(replica);
    await locks.acquire("token").then((lock) => lock.release());
    await group.master.command("WAIT", 1, 2_000);
    replica.freeze();
    let last = 0n;
    for (let n = 0; n < 5; n++) {
      const lock = await locks.acquire("token");
      last = lock.token;
      await lock.release();
    }
    await group.master.kill();
    replica.thaw();
    await replica.promote();
    const after = await (await locksOn(t, replica)).acquire("token");
    assert.ok(after.token > last);
    await after.release();
  }),
);

test(
  "incident 66: with minReplicas a grant that no replica has is none, and nothing of it stays",
  incident(async (t) => {
    const group = await startReplicatedRedis(2);
    t.after(() => group.stop());
    const locks = await locksOn(t, group.master, { minReplicas: 1, replicaTimeoutMs: 500 });
    assert.equal(locks.traits.survivesFailover, true);
    const lock = await locks.acquire("replicated", { ttlMs: 15_000 });
    const waiting = locks.acquire("replicated", { ttlMs: 15_000 });
    await eventually("it waits", async () => (await pending(locks, "replicated")) === 1);
    await lock.release();
    const next = await within("the hand-off, confirmed by the receiver's renewal", 10_000, waiting);

    for (const replica of group.replicas) replica.freeze();
    await assert.rejects(locks.acquire("lonely", { ttlMs: 3_000 }), EngineUnavailableError);
    await assert.rejects(next.renew(), EngineUnavailableError);
    for (const replica of group.replicas) replica.thaw();
    const { held } = await locks.query();
    assert.deepEqual(
      held.map(({ name }) => name),
      ["replicated"],
    );
    await next.release();

    // What was confirmed survives: the promoted replica knows the holder.
    const kept = await locks.acquire("kept", { ttlMs: 5_000 });
    const counts = await Promise.all(group.replicas.map((replica) => replica.command("EXISTS", "holdfast:{kept}")));
    assert.ok(counts.includes(1));
    const heir = group.replicas[counts.indexOf(1)];
    await group.master.kill();
    await heir?.promote();
    const others = await locksOn(t, heir?.url ?? "");
    assert.equal(await others.tryAcquire("kept"), null);
    const [holder] = (await others.query({ prefix: "kept" })).held;
    assert.equal(holder?.token, kept.token);
  }),
);

test(
  "a failover after which nobody has subscribed yet: every living waiter is served within its keep-alive period",
  { timeout: 60_000 },
  incident(async (t) => {
    const group = await startReplicatedRedis(1);
    t.after(() => group.stop());
    const [replica] = group.replicas;
    assert.ok(replica);
    const all = await Promise.all(Array.from({ length: 8 }, () => locksOn(t, group.master, { commandTimeoutMs: 500 })));
    const [first] = all as [LockManager];
    const holder = await first.acquire("failover", { ttlMs: 3_000 });
    const waiting = all.map((locks) => locks.acquire("failover", { ttlMs: 3_000, waitMs: 40_000 }));
    await eventually("they wait", async () => (await pending(first, "failover")) === 8);
    await group.master.command("WAIT", 1, 2_000);
    const port = group.master.port;
    await group.master.kill();
    await replica.promote();
    // The address moves to the replica, as a virtual address does.
    const moved = await startFaultProxy(replica.port, "127.0.0.1", port);
    t.after(() => moved.close());
    await holder.release();
    let inside = 0;
    await within(
      "all of them",
      30_000,
      Promise.all(
        waiting.map(async (each) => {
          const lock = await each;
          assert.equal(++inside, 1);
          inside--;
          await lock.release();
        }),
      ),
    );
  }),
);

test(
  "incidents 47, 49: in a Cluster every name has one slot; first requests may come all at once",
  incident(async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const url = `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
    const [one, two] = await Promise.all([locksOn(t, url), locksOn(t, url)]);
    const names = Array.from({ length: 60 }, (_, n) => `name-${n}`).concat(["}", "{}", "{a}b", "a{b"]);
    const held = await Promise.all(names.map((name) => one.acquire(name, { ttlMs: 2_000 })));
    const waiting = names.map((name) => two.acquire(name, { ttlMs: 2_000 }));
    await eventually("they wait", async () => (await one.query()).pending.length === names.length);
    await sleep(1_500); // renewed, over all slots
    assert.ok(held.every((lock) => lock.isHeld()));
    await Promise.all(held.map((lock) => lock.release()));
    const next = await within("all hand-offs", 10_000, Promise.all(waiting));
    await Promise.all(next.map((lock) => lock.release()));
  }),
);

test(
  "the least privileges of the docs are enough, and what they lack is a ConfigError",
  incident(async (t) => {
    const rules =
      "on >secret resetkeys ~holdfast:* resetchannels &holdfast:bell:* -@all +evalsha +eval +get +set +time " +
      "+hget +hset +hdel +hgetall +lindex +lpop +lpush +rpush +lrange +lrem +llen +del +pexpire +pttl +publish " +
      "+pubsub|numsub +subscribe +unsubscribe +ping +info +scan +wait +client|setname +hello +select";
    const redis = await server(t, { users: { app: rules, poor: "on >secret ~holdfast:* &* +ping +info +subscribe" } });
    const login = (user: string): string => redis.url.replace("//", `//${user}:secret@`);
    const [one, two] = await Promise.all([locksOn(t, login("app")), locksOn(t, login("app"))]);
    const lock = await one.acquire("name", { minHoldMs: 20 });
    const waiting = two.acquire("name");
    await eventually("it waits", async () => (await pending(one, "name")) === 1);
    await lock.renew();
    await lock.release();
    await within("the hand-off", 5_000, waiting).then((next) => next.release());
    await one.request("name", { steal: true }, () => {});
    assert.equal(await one.evict("name", 1n), false);
    const poor = await locksOn(t, login("poor"));
    await assert.rejects(poor.acquire("name"), (error: Error) => {
      assert.ok(error instanceof ConfigError);
      return /NOPERM/.test(error.message) && !error.message.includes("secret");
    });
  }),
);

test(
  "a client that is handed over but not connected, or no client at all, is a ConfigError",
  incident(async () => {
    const closed = createClient({ url: "redis://127.0.0.1:1" });
    await assert.rejects(connect(engine({ client: closed })), ConfigError);
    await assert.rejects(connect(engine({ client: {} as never })), ConfigError);
    assert.throws(() => engine({}), ConfigError);
    assert.throws(() => engine({ url: "redis://a", prefix: "my app:" }), ConfigError);
    assert.throws(() => fromUrl("redis://user:secret@a?nonsense=1"), ConfigError);
  }),
);
