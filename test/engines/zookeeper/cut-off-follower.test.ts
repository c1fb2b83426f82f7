/**
 * A follower that has lost its leader goes on answering the pings of its clients, while the leader ends their sessions. For real: in a
 * network of Linux namespaces. Needs root, `ip` and `nft`; fails without.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import { before, test } from "node:test";
import { PRIVATE_NETWORK } from "../../../servers/private-network.ts";
import { ensureDebianPackage } from "../../../servers/server-process.ts";
import { ensureZooKeeper } from "../../../servers/zookeeper.ts";

const PROGRAM = `${import.meta.dirname}/cut-off-follower-program.ts`;

interface Times {
  readonly abortedMs: number;
  readonly grantedMs: number;
}

async function cutOff(signal: AbortSignal, ...args: string[]): Promise<Times> {
  const [command = "", ...before] = PRIVATE_NETWORK;
  const child = spawn(command, [...before, process.execPath, PROGRAM, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    signal,
  });
  const ended = new Promise<unknown>((resolve) => child.once("error", resolve).once("close", resolve));
  const [output, errors, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  assert.equal(status, 0, `the private network or the program in it failed: ${errors}`);
  return JSON.parse(output) as Times;
}

before(async () => {
  await ensureZooKeeper();
  await ensureDebianPackage({
    what: "A private network",
    packages: ["iproute2", "nftables", "util-linux"],
    present: () => ["/usr/sbin/ip", "/usr/sbin/nft", "/usr/bin/unshare"].every((path) => existsSync(path)),
  });
});

test(
  "incident 59: cut off with its follower, the holder knows before the next is granted",
  { timeout: 240_000 },
  async (t) => {
    const { abortedMs, grantedMs } = await cutOff(t.signal);
    t.diagnostic(
      `the signal aborted after ${Math.round(abortedMs)} ms, the next was granted after ${Math.round(grantedMs)} ms`,
    );
    assert.ok(abortedMs < grantedMs, `aborted after ${abortedMs} ms, the next granted after ${grantedMs} ms`);
  },
);

/** The leader's lag is what makes the difference: this shows that the test above can fail. */
test("without leaderLagMs both would hold the lock", { timeout: 240_000 }, async (t) => {
  const { abortedMs, grantedMs } = await cutOff(t.signal, "0");
  t.diagnostic(
    `the signal aborted after ${Math.round(abortedMs)} ms, the next was granted after ${Math.round(grantedMs)} ms`,
  );
  assert.ok(abortedMs > grantedMs, `aborted after ${abortedMs} ms, the next granted after ${grantedMs} ms`);
});
