/** What happens when another library's lock is used on the same path: here kazoo's, with and without telling it of ours. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureDebianPackage } from "../../../servers/server-process.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../../servers/zookeeper.ts";
import { zookeeper } from "../../../src/engines/zookeeper/index.ts";
import { connect, type LockManager } from "../../../src/index.ts";

const KAZOO = "/usr/lib/python3/dist-packages/kazoo";
/** Takes the lock, says so, releases it when told to. */
const PROGRAM = `
import sys
from kazoo.client import KazooClient
zk = KazooClient(hosts=sys.argv[1]); zk.start()
lock = zk.Lock(sys.argv[2], "kazoo", extra_lock_patterns=sys.argv[3:])
print("asks", flush=True)
lock.acquire()
print("has", flush=True)
sys.stdin.readline()
lock.release()
print("left", flush=True)
zk.stop()
`;

let server: ZooKeeperServer;
let locks: LockManager;

before(async () => {
  await ensureDebianPackage({ what: "kazoo", packages: ["python3-kazoo"], present: () => existsSync(KAZOO) });
  server = await startZooKeeper();
  locks = await connect(zookeeper({ servers: server.address, sessionTimeoutMs: 10_000 }));
});

after(async () => {
  await locks.close();
  await server.stop();
});

interface Kazoo {
  readonly lines: string[];
  release(): void;
  readonly ended: Promise<void>;
}

function kazoo(name: string, ...patterns: string[]): Kazoo {
  const child = spawn("/usr/bin/python3", ["-c", PROGRAM, server.address, `/holdfast/${name}`, ...patterns]);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const ended = new Promise<void>((resolve) => void child.once("close", () => resolve()));
  return { lines, release: () => void child.stdin.end("\n"), ended };
}

async function says(other: Kazoo, line: string): Promise<void> {
  for (let n = 0; n < 1_500 && !other.lines.includes(line); n++) await sleep(20);
  assert.ok(other.lines.includes(line), `kazoo said ${other.lines.join(", ")}`);
}

test("we wait for kazoo's lock in its place", async () => {
  const other = kazoo("theirs");
  await says(other, "has");
  assert.equal(await locks.tryAcquire("theirs"), null);
  const waiting = locks.acquire("theirs");
  await sleep(300);
  assert.deepEqual(other.lines, ["asks", "has"]);
  other.release();
  await (await waiting).release();
  await other.ended;
});

test("kazoo waits for ours when it is told how our names end", async () => {
  const lock = await locks.acquire("ours");
  const other = kazoo("ours", "lock-");
  await says(other, "asks");
  await sleep(500);
  assert.ok(!other.lines.includes("has"));
  await lock.release();
  await says(other, "has");
  other.release();
  await other.ended;
});

test("kazoo does not see ours when it is not told", async () => {
  const lock = await locks.acquire("unseen");
  const other = kazoo("unseen");
  await says(other, "has");
  assert.ok(lock.isHeld(), "two hold it: do not share a path");
  other.release();
  await other.ended;
  await lock.release();
});
