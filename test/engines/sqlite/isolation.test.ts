/**
 * Two containers' worth of isolation on one kernel: network, mount and PID namespaces of their own, a private /tmp, and one
 * shared folder with the lock file. Needs Linux and the right to make namespaces (root, or user namespaces).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { monotonicMs, startProcess, temporaryFolder, type WorkerProcess } from "./workers.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");
/** Where each container sees the shared folder. */
const INSIDE = "/mnt/locks.db";
/** The private /tmp is made elsewhere first: a repository below /tmp is mounted into it before it hides the old one. */
const ENTER = `
  set -e
  mount --bind "$LOCKS" /mnt
  mount -t tmpfs none /media
  case $REPOSITORY in /tmp/*)
    mkdir -p "/media/\${REPOSITORY#/tmp/}"
    mount --rbind "$REPOSITORY" "/media/\${REPOSITORY#/tmp/}"
  esac
  mount --rbind /media /tmp
  exec "$@"
`;

const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
const UNSHARE = ["unshare", ...asRoot, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

function startContainer(t: TestContext, folder: string): WorkerProcess {
  const probe = spawnSync(UNSHARE[0] ?? "", [...UNSHARE.slice(1), "true"], { encoding: "utf8" });
  assert.equal(probe.status, 0, `namespaces cannot be made here, and this test needs them: ${probe.stderr}`);
  return startProcess(t, [...UNSHARE, "sh", "-c", ENTER, "sh"], { LOCKS: folder, REPOSITORY, TMPDIR: "/tmp" });
}

test("incident 65: containers that share only the lock folder declare nobody dead, and serve their waiters", async (t) => {
  const folder = temporaryFolder(t);
  const [one, two] = [startContainer(t, folder), startContainer(t, folder)];
  await one.connect(INSIDE);
  await two.connect(INSIDE);
  const first = await one.acquire("x", { ttlMs: 60_000 });
  assert.equal(await two.tryAcquire("x"), null);
  const granted = two.acquire("x", { ttlMs: 60_000 });
  assert.equal(await Promise.race([granted.then(() => true), sleep(2_000).then(() => false)]), false);
  assert.equal((await one.state("x"))?.isHeld, true);
  const releasedAtMs = await one.release("x");
  const second = await granted;
  assert.ok(second.atMs - releasedAtMs < 1_000, `granted after ${second.atMs - releasedAtMs} ms`);
  assert.ok(BigInt(second.token) > BigInt(first.token));
});

test("a killed holder in one container lets the next one in at once in the other", async (t) => {
  const folder = temporaryFolder(t);
  const [one, two] = [startContainer(t, folder), startContainer(t, folder)];
  await one.connect(INSIDE);
  await two.connect(INSIDE);
  await one.acquire("x", { ttlMs: 60_000 });
  const granted = two.acquire("x", { ttlMs: 60_000 });
  await sleep(300);
  const killedAtMs = monotonicMs();
  one.signal("SIGKILL");
  const { atMs } = await granted;
  assert.ok(atMs - killedAtMs < 1_500, `granted after ${atMs - killedAtMs} ms`);
});

test("the command of a killed supervisor cannot be seen from another container: there the lease has to end", async (t) => {
  const folder = temporaryFolder(t);
  const [one, two] = [startContainer(t, folder), startContainer(t, folder)];
  // Its whole PID namespace ends with it, the group too; nobody outside can know.
  await one.connect(INSIDE, await one.tell<number>({ verb: "group" }));
  await two.connect(INSIDE);
  const ttlMs = 3_000;
  await one.acquire("x", { ttlMs });
  const granted = two.acquire("x", { ttlMs });
  await sleep(300);
  const killedAtMs = monotonicMs();
  one.signal("SIGKILL");
  const waitedMs = (await granted).atMs - killedAtMs;
  assert.ok(waitedMs > ttlMs / 2, `granted after only ${waitedMs} ms`);
  assert.ok(waitedMs < ttlMs + 1_500, `granted after ${waitedMs} ms`);
});

test("a process outside and one in a container share the locks", async (t) => {
  const folder = temporaryFolder(t);
  const outside = startProcess(t);
  const inside = startContainer(t, folder);
  await outside.connect(join(folder, "locks.db"));
  await inside.connect(INSIDE);
  await outside.acquire("x", { ttlMs: 60_000 });
  assert.equal(await inside.tryAcquire("x"), null);
  const granted = inside.acquire("x", { ttlMs: 60_000 });
  await sleep(200);
  const killedAtMs = monotonicMs();
  outside.signal("SIGKILL");
  const { atMs } = await granted;
  assert.ok(atMs - killedAtMs < 1_500, `granted after ${atMs - killedAtMs} ms`);
});
