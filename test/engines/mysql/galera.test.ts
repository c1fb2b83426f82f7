/** A real Galera node: named locks are of one node only there, so waiters do without, and the traits say so. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { freePort } from "../../../servers/server-process.ts";
import { pause, within } from "../../../src/testing/expect.ts";
import { database, locksOn } from "./database.ts";

test("incident 41: on a Galera cluster bells are off, and everybody is served all the same", async (t) => {
  const ports = `gmcast.listen_addr=tcp://127.0.0.1:${await freePort()};ist.recv_addr=127.0.0.1:${await freePort()}`;
  const server = await database({
    settings: [
      "wsrep-on=ON",
      "wsrep-provider=/usr/lib/galera/libgalera_smm.so",
      "wsrep-cluster-address=gcomm://",
      `wsrep-provider-options="${ports}"`,
      "wsrep-node-address=127.0.0.1",
      "binlog-format=ROW",
      "innodb-autoinc-lock-mode=2",
    ],
  })();
  const managers = await Promise.all([locksOn(t, server), locksOn(t, server)]);
  assert.deepEqual(
    managers.map((locks) => locks.traits.bells),
    ["recheck", "recheck"],
  );
  let inside = 0;
  let most = 0;
  let last = 0n;
  const work = managers.map(async (locks) => {
    for (let turn = 0; turn < 5; turn++) {
      await locks.request("galera", async (lock) => {
        most = Math.max(most, ++inside);
        assert.ok(lock.token > last);
        last = lock.token;
        await pause(1);
        inside--;
      });
    }
  });
  await within(60_000, "10 turns", Promise.all(work));
  assert.equal(most, 1);
});
