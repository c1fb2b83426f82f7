/** The ZooKeeper fence: a check of a version inside the caller's own transaction. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "../../servers/zookeeper.ts";
import { zookeeperFence } from "../../src/fence/index.ts";
import { ZooKeeper } from "../../src/zookeeper/index.ts";
import { guardCases, refuses, type Guarded } from "./guard-cases.ts";

let server: ZooKeeperServer;
let client: ZooKeeper;

before(async () => {
  server = await startZooKeeper();
  client = await ZooKeeper.connect(server.address);
  await client.create("/things");
});

after(async () => {
  await client.close();
  await server.stop();
});

function guarded(epoch: number): Guarded {
  const path = (name: string): string => `/things/-${encodeURIComponent(name)}`;
  return {
    enter: async (name, fencing) => void (await zookeeperFence(client, { epoch }).enter(name, fencing)),
    write: async (name, fencing, value) => {
      const entry = await zookeeperFence(client, { epoch }).enter(name, fencing);
      const exists = (await client.exists(path(name))) !== null;
      await entry
        .multi([
          exists
            ? { kind: "setData", path: path(name), data: value }
            : { kind: "create", path: path(name), data: value },
        ])
        .catch(async (error: { code?: string }) => {
          // Somebody else made the node in between: no matter of the fence.
          if (error.code !== "NODE_EXISTS") throw error;
          await entry.multi([{ kind: "setData", path: path(name), data: value }]);
        });
    },
    read: async (name) => {
      const node = await client.getData(path(name)).catch(() => undefined);
      return node?.data.toString();
    },
  };
}

guardCases("ZooKeeper", () => guarded(0), guarded);

test("ZooKeeper: one entry serves for the whole hold, until a later holder enters", async () => {
  const fence = zookeeperFence(client, { root: "/own/fences" });
  await client.create("/hold", "0");
  const entry = await fence.enter("hold", 1n);
  for (const data of ["1", "2", "3"]) await entry.multi([{ kind: "setData", path: "/hold", data }]);
  const [result] = await client.multi([entry.check, { kind: "setData", path: "/hold", data: "4" }]);
  assert.equal(result?.kind, "check", "in a multi of the caller's own");
  const again = await fence.enter("hold", 1n);
  await fence.enter("hold", 2n);
  for (const old of [entry, again]) await refuses(old.multi([{ kind: "setData", path: "/hold", data: "late" }]));
  await assert.rejects(client.multi([entry.check, { kind: "delete", path: "/hold" }]), {
    code: "BAD_VERSION",
    index: 0,
  });
  assert.equal((await client.getData("/hold")).data.toString(), "4");
});

test("ZooKeeper: a version of the caller's own that does not fit is not called stale", async () => {
  const fence = zookeeperFence(client);
  await client.create("/versioned", "0");
  const entry = await fence.enter("versioned", 1n);
  const failed = entry.multi([{ kind: "setData", path: "/versioned", data: "1", version: 7 }]);
  await assert.rejects(failed, { name: "TransactionError", code: "BAD_VERSION" });
});

test("ZooKeeper: a node that holds something else is not overwritten; wrong roots are refused", async () => {
  await client.create("/holdfast-fence/-taken", "hello");
  await assert.rejects(zookeeperFence(client).enter("taken", 1n), { code: "CONFIG" });
  for (const root of ["", "/", "relative", "/a/"]) {
    assert.throws(() => zookeeperFence(client, { root }), { code: "CONFIG" }, root);
  }
  await assert.rejects(zookeeperFence(client).enter("", 1n), { code: "CONFIG" });
});
