/**
 * Runs in a network of its own: three servers on three hosts, a holder connected to a follower, a waiter connected to the other two
 * servers. Cuts the follower from the others, not from the holder. Prints as JSON how long after the cut the holder's signal aborted,
 * and the waiter was granted. Argument: leaderLagMs; without one the engine asks the servers.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../servers/free-port.ts";
import { startNetwork } from "../../../servers/private-network.ts";
import { PrivateEnsemble } from "../../../servers/zookeeper-ensemble.ts";
import { startZooKeeper } from "../../../servers/zookeeper.ts";
import { zookeeper } from "../../../src/engines/zookeeper/index.ts";
import { connect } from "../../../src/index.ts";

/** The leader's lag is (10 + 1) × 500 ms = 5.5 s, and the follower gives up 5 s after the cut. */
const SERVER = { tickTimeMs: 500, syncLimit: 10 };
const SESSION_TIMEOUT_MS = 8_000;
const NAME = "cut off";

const leaderLagMs = process.argv[2] === undefined ? undefined : Number(process.argv[2]);

const hosts = await startNetwork(3);
const lines: string[] = [];
for (const [index, { address }] of hosts.entries()) {
  lines.push(`server.${index + 1}=${address}:${await freePort()}:${await freePort()}`);
}
const ensemble = new PrivateEnsemble(
  await Promise.all(
    hosts.map(({ address, enter }, index) => startZooKeeper(SERVER, { id: index + 1, lines, host: address, enter })),
  ),
);
try {
  await ensemble.leader();
  const [follower] = await ensemble.followers();
  assert.ok(follower, "there is a follower");
  const others = ensemble.servers.filter((server) => server !== follower);
  const cut = hosts.find(({ address }) => follower.address.startsWith(`${address}:`));
  assert.ok(cut);

  const common = { sessionTimeoutMs: SESSION_TIMEOUT_MS, connectWithinMs: 30_000 };
  const holder = await connect(zookeeper({ ...common, servers: follower.address, leaderLagMs }));
  const next = await connect(zookeeper({ ...common, servers: others.map(({ address }) => address).join(",") }));
  const held = await holder.acquire(NAME);
  const waiting = next.acquire(NAME);
  await sleep(1_000);

  await cut.cutFrom(hosts.filter((host) => host !== cut));
  const cutAt = performance.now();
  const aborted = new Promise<number>((resolve) => {
    held.signal.addEventListener("abort", () => resolve(performance.now() - cutAt), { once: true });
  });
  const granted = waiting.then((lock) => {
    assert.ok(lock.token > held.token, "tokens grow");
    return performance.now() - cutAt;
  });
  console.log(JSON.stringify({ abortedMs: await aborted, grantedMs: await granted }));
} finally {
  await ensemble.stop();
}
process.exit();
