/**
 * Deliberately wrong locks, as articles write them naively, against real servers: the checker must catch every one. The
 * same scenes with Holdfast on the same servers break nothing.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startMariadb, type MariadbServer } from "../../servers/mariadb.ts";
import { startRedis, type RedisServer } from "../../servers/redis.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../servers/zookeeper.ts";
import { mysql } from "../../src/engines/mysql/index.ts";
import { redis } from "../../src/engines/redis/index.ts";
import { redlock } from "../../src/engines/redlock/index.ts";
import { zookeeper } from "../../src/engines/zookeeper/index.ts";
import type { Engine } from "../../src/index.ts";
import { checkHistory, countByPromise, type Judged } from "../../src/testing/history/index.ts";
import type { PausableClock } from "../../src/testing/pausable-clock.ts";
import { HoldfastLock } from "./planted/holdfast-lock.ts";
import { Doors, type PlantedLock } from "./planted/lock.ts";
import { FieldLock, makeField, Monitor } from "./planted/mysql-field.ts";
import { DeletesAnybodys, HasNoToken, LooksFirst } from "./planted/redis-locks.ts";
import { PlainRedlock } from "./planted/redlock-plain.ts";
import * as scenes from "./planted/scenes.ts";
import { Scene, User } from "./planted/user.ts";
import { Herd, TrustsItsPredecessor } from "./planted/zookeeper-locks.ts";

const { TTL_MS, NEVER_MS } = scenes;
const PATIENCE_MS = NEVER_MS - 500;

interface Servers {
  readonly redis: RedisServer;
  readonly nodes: readonly RedisServer[];
  readonly mariadb: MariadbServer;
  readonly zookeeper: ZooKeeperServer;
}

interface Planted {
  readonly what: string;
  readonly play: scenes.Play;
  readonly caught: readonly Judged[];
  readonly plant: (servers: Servers, owner: string, doors: Doors) => Promise<PlantedLock>;
  readonly monitors?: (servers: Servers, doors: Doors) => Promise<readonly Monitor[]>;
  readonly own: (servers: Servers, owner: string, clock: PausableClock) => Engine;
}

const ownRedis: Planted["own"] = ({ redis: { url } }, _, clock) => redis({ url, clock });
const ownMysql: Planted["own"] = ({ mariadb: { url } }, _, clock) => mysql({ url, clock });
const ownZooKeeper: Planted["own"] = ({ zookeeper: { address } }, _, clock) =>
  zookeeper({ servers: address, sessionTimeoutMs: 1_000, clock });
const ownRedlock: Planted["own"] = ({ nodes }, owner, clock) =>
  redlock({ urls: nodes.map(({ url }) => url), maxTtlMs: 2_000, bootstrap: owner === "a", clock });
const field: Planted["plant"] = async ({ mariadb: { url } }, owner) => {
  if (owner === "a") await makeField(url);
  return FieldLock.connect(url, owner);
};

const PLANTED: readonly Planted[] = [
  {
    what: "Redis, no owner check on release",
    play: scenes.lateRelease,
    caught: ["S1"],
    plant: async (servers, owner) => new DeletesAnybodys(servers.redis.port, owner, TTL_MS),
    own: ownRedis,
  },
  {
    what: "Redis, a time to live without a token",
    play: scenes.lateWrite,
    caught: ["S1", "S3"],
    plant: async (servers, owner) => new HasNoToken(servers.redis.port, owner, TTL_MS),
    own: ownRedis,
  },
  {
    what: "Redis, look first, then set",
    play: scenes.twoLook,
    caught: ["S1"],
    plant: async (servers, owner, doors) => new LooksFirst(servers.redis.port, owner, 10 * TTL_MS, doors),
    own: ownRedis,
  },
  {
    what: "ZooKeeper, a herd with a missed watch",
    play: scenes.missedWatch,
    caught: ["L1", "L5"],
    plant: (servers, owner, doors) => Herd.connect(servers.zookeeper.address, owner, doors),
    own: ownZooKeeper,
  },
  {
    what: "ZooKeeper, the end of the one in front taken for one's turn",
    play: scenes.deadWaiter,
    caught: ["S1"],
    plant: (servers, owner) => TrustsItsPredecessor.connect(servers.zookeeper.address, owner),
    own: ownZooKeeper,
  },
  {
    what: "Redlock as in the five steps, with an instant restart",
    play: scenes.crashedNode,
    caught: ["S1"],
    plant: async ({ nodes }, owner) =>
      new PlainRedlock(
        nodes.map(({ port }) => port),
        owner,
        10 * TTL_MS,
      ),
    own: ownRedlock,
  },
  {
    what: "MySQL, a field with a monitor that frees it",
    play: scenes.slowHolder,
    caught: ["S1"],
    plant: field,
    monitors: async ({ mariadb: { url } }, doors) => [await Monitor.connect(url, "monitor", TTL_MS, doors)],
    own: ownMysql,
  },
  {
    what: "MySQL, a field without a monitor",
    play: scenes.deadHolder,
    caught: ["L1", "L5"],
    plant: field,
    own: ownMysql,
  },
  {
    what: "MySQL, a field with two monitors",
    play: scenes.twoMonitors,
    caught: ["S1"],
    plant: field,
    monitors: async ({ mariadb: { url } }, doors) => [
      await Monitor.connect(url, "first monitor", TTL_MS, doors),
      await Monitor.connect(url, "second monitor", TTL_MS, doors),
    ],
    own: ownMysql,
  },
];

let servers: Servers | undefined;
const running = (): Servers => {
  assert.ok(servers !== undefined, "the servers have not been started");
  return servers;
};

before(async () => {
  const [first, mariadb, zk, ...nodes] = await Promise.all([
    startRedis(),
    startMariadb(),
    startZooKeeper({ tickTimeMs: 200 }),
    startRedis(),
    startRedis(),
    startRedis(),
  ]);
  servers = { redis: first, nodes, mariadb, zookeeper: zk };
});
after(async () => {
  if (servers === undefined) return;
  const { nodes, ...single } = servers;
  await Promise.all([...nodes, ...Object.values(single)].map((server) => server.stop()));
});

type MakeLock = (owner: string, doors: Doors) => Promise<PlantedLock>;

/** Plays the scene; the promises that were broken, and their pictures. */
async function play({ play, monitors }: Planted, makeLock: MakeLock, planted: boolean) {
  const { nodes, redis: single } = running();
  for (const server of [single, ...nodes]) await server.command("FLUSHALL");
  const doors = new Doors();
  const scene = new Scene();
  const [a, b, c] = [
    new User(scene, "a", await makeLock("a", doors)),
    new User(scene, "b", await makeLock("b", doors)),
    new User(scene, "c", await makeLock("c", doors)),
  ];
  const watching = planted ? ((await monitors?.(running(), doors)) ?? []) : [];
  try {
    const fallible = nodes.map((node) => ({ down: () => node.kill(), up: () => node.restartEmpty() }));
    const cast = { a, b, c, doors, nodes: fallible };
    await play(cast);
    await scenes.curtain(cast);
    const report = checkHistory(scene.end(), { passesOnWithinMs: PATIENCE_MS, complete: true });
    return { found: countByPromise(report.violations), drawn: report.violations.map(report.draw).join("\n\n") };
  } finally {
    await Promise.all([a, b, c, ...watching].map((each) => each.close()));
  }
}

void describe("planted faults", { concurrency: 1 }, () => {
  for (const planted of PLANTED) {
    void test(`caught: ${planted.what}`, async (context) => {
      const { found, drawn } = await play(planted, (owner, doors) => planted.plant(running(), owner, doors), true);
      for (const promise of planted.caught)
        assert.ok((found[promise] ?? 0) > 0, `${promise} was not broken; found ${JSON.stringify(found)}\n${drawn}`);
      context.diagnostic(drawn.split("\n")[0] ?? "");
    });

    void test(`Holdfast in its place: ${planted.what}`, async () => {
      const { own } = planted;
      const { drawn } = await play(
        planted,
        (owner) => HoldfastLock.connect((clock) => own(running(), owner, clock)),
        false,
      );
      assert.equal(drawn, "");
    });
  }
});
