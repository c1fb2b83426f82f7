/** A server that cannot be asked for its settings is away, not misconfigured. Found by the fault suite. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startFaultProxy } from "../../../servers/fault-proxy.ts";
import { startZooKeeper } from "../../../servers/zookeeper.ts";
import { zookeeper } from "../../../src/engines/zookeeper/index.ts";
import { connect, EngineUnavailableError } from "../../../src/index.ts";

void test("no answer to the question for the leader's lag: unavailable, and tried again the next time", async () => {
  const server = await startZooKeeper();
  let mute = true;
  // Sessions pass; answers to four letter words, which are text, do not.
  const isText = (bytes: Buffer): boolean => bytes.length > 4 && bytes.readInt32BE(0) > 2 ** 16;
  const filter = (bytes: Buffer): Buffer => (mute && isText(bytes) ? Buffer.alloc(0) : bytes);
  const proxy = await startFaultProxy(server.port, undefined, undefined, () => filter);
  try {
    const options = { servers: proxy.address, sessionTimeoutMs: 4_500 };
    await assert.rejects(connect(zookeeper(options)), EngineUnavailableError);
    const patient = await connect(zookeeper({ ...options, leaderLagMs: 1_000 }));
    await patient.close();
    mute = false;
    const locks = await connect(zookeeper(options));
    await (await locks.acquire("report")).release();
    await locks.close();
  } finally {
    await proxy.close();
    await server.stop();
  }
});
