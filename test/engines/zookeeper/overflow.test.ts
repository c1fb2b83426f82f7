/**
 * Incident 28, for real: the counter of a container comes to its end while many clients, some of them slow, pass it. Servers
 * start from a snapshot in which the counter is about to get there.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startZooKeeper } from "../../../servers/zookeeper.ts";
import { startEnsemble } from "../../../servers/zookeeper-ensemble.ts";
import { FIRST_INVALID_SEQUENCE, isValid, parseNode, queueOf } from "../../../src/engines/zookeeper/request-node.ts";
import { zookeeper } from "../../../src/engines/zookeeper/index.ts";
import { connect, type LockManager } from "../../../src/index.ts";
import { ZooKeeper } from "../../../src/zookeeper/index.ts";

const PATH = "/holdfast/hot";
/** Just before our own limit, and where the server's counter itself ends. */
const STARTS = [FIRST_INVALID_SEQUENCE - 12, 2 ** 31 - 3];

async function start(size: number, nextSequence: number): Promise<{ addresses: string; stop(): Promise<void> }> {
  const snapshot = { path: PATH, nextSequence };
  if (size > 1) return await startEnsemble({ snapshot }, size);
  const server = await startZooKeeper({ snapshot });
  return { addresses: server.address, stop: () => server.stop() };
}

/** Many requests from several sessions; each looks whether it is alone, and some are slow. Resolves to the tokens in order. */
async function pass(managers: readonly LockManager[], turns: number): Promise<bigint[]> {
  const tokens: bigint[] = [];
  let inside = 0;
  const requests = managers.flatMap((locks, manager) =>
    Array.from({ length: turns }, async (_, turn) => {
      await sleep(turn * 3);
      await locks.request("hot", async (lock) => {
        assert.equal(++inside, 1, "two hold the lock");
        tokens.push(lock.token);
        await sleep(manager === 0 && turn % 3 === 0 ? 60 : 1);
        assert.ok(lock.isHeld());
        inside--;
      });
    }),
  );
  await Promise.all(requests);
  return tokens;
}

for (const size of [1, 3]) {
  for (const nextSequence of STARTS) {
    test(`incident 28: past the end of the counter, from ${nextSequence}, ${size} server(s)`, async () => {
      const servers = await start(size, nextSequence);
      const engine = { servers: servers.addresses, sessionTimeoutMs: 20_000 };
      const managers = await Promise.all(Array.from({ length: 4 }, () => connect(zookeeper(engine))));
      const zk = await ZooKeeper.connect(servers.addresses);
      try {
        const tokens = await pass(managers, 12);
        assert.equal(tokens.length, 48);
        tokens.forEach((token, index) => assert.ok(index === 0 || token > (tokens[index - 1] ?? 0n), "tokens grow"));
        await zk.sync(PATH);
        assert.deepEqual(
          (await zk.getChildren(PATH)).children,
          ["sealed"],
          "only the marker keeps the used-up container",
        );
        assert.ok((await zk.getChildren("/holdfast")).children.includes("hot~1"));
        // Somebody who comes later finds the way, and readers, permits and eviction work there too.
        const late = await connect(zookeeper(engine));
        const readers = await Promise.all([late, ...managers].map((each) => each.acquire("hot", { mode: "shared" })));
        assert.equal((await late.query()).held.length, 5);
        assert.equal(await late.tryAcquire("hot"), null);
        await Promise.all(readers.map((reader) => reader.release()));
        const victim = await late.acquire("hot");
        assert.ok(await managers[0]?.evict("hot", victim.token));
        await late.close();
        assert.deepEqual((await zk.getChildren(PATH)).children, ["sealed"]);
      } finally {
        await Promise.all([...managers, zk].map((each) => each.close()));
        await servers.stop();
      }
    });
  }
}

test("suffixes at and past the end are never valid, and never ahead of anybody", () => {
  const owner = "A".repeat(22);
  const node = (suffix: string): string => `${owner}-x-lock-${suffix}`;
  for (const suffix of ["-2147483648", "-000000002", "2147483647", String(FIRST_INVALID_SEQUENCE)]) {
    assert.equal(isValid(parseNode(node(suffix))?.sequence ?? 0), false, suffix);
  }
  const children = ["-2147483648", "2147483647", "0000000007", "0000000003", "-000000002"].map(node);
  assert.deepEqual(
    queueOf([...children, "sealed", "anything"]).map(({ sequence }) => sequence),
    [3, 7],
  );
});

test("incident 29: the order is the sequence's, whatever stands in front; others' nodes have their place", () => {
  const names = [
    `${"z".repeat(22)}-r-lock-0000000001`,
    `${"a".repeat(22)}-s3-lock-0000000002`,
    "_c_0c0a-1-lock-0000000000",
    "fe__lock__0000000003",
  ];
  assert.deepEqual(
    queueOf(names).map(({ mode, limit, sequence }) => [sequence, mode, limit]),
    [
      [0, "exclusive", 1],
      [1, "shared", Infinity],
      [2, "shared", 3],
      [3, "exclusive", 1],
    ],
  );
});
