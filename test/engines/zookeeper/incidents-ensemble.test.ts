/** Public incidents of an ensemble. The numbers are those of docs/incidents.md. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startEnsemble } from "../../../servers/zookeeper-ensemble.ts";
import { zookeeper } from "../../../src/engines/zookeeper/index.ts";
import { connect } from "../../../src/index.ts";
import { within } from "../../../src/testing/expect.ts";

const SESSION_MS = 20_000;

test("incidents 48, 57: members are killed, the leader too: what is held stays held, calls succeed, tokens grow", async (t) => {
  const ensemble = await startEnsemble();
  t.after(() => ensemble.stop());
  const locks = await connect(zookeeper({ servers: ensemble.addresses, sessionTimeoutMs: SESSION_MS }));
  try {
    const held = await locks.acquire("kept");
    let last = 0n;
    const grows = async (why: string): Promise<void> => {
      for (let turn = 0; turn < 3; turn++) {
        const lock = await within(SESSION_MS, why, locks.acquire("token"));
        assert.ok(lock.token > last, `${why}: ${lock.token} after ${last}`);
        last = lock.token;
        await lock.release();
      }
      await within(SESSION_MS, why, held.renew());
      assert.ok(held.isHeld(), why);
    };
    await grows("all are there");
    const leader = await ensemble.leader();
    const [follower] = ensemble.servers.filter((each) => each !== leader);
    await follower?.kill();
    await grows("one of three is dead");
    await follower?.restart();
    await leader.kill();
    await grows("the leader is dead");
    await held.release();
  } finally {
    await locks.close();
  }
});
