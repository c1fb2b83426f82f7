/** `--also`, `--permits` and `holdfast lead`, with real processes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { connect } from "../../src/index.ts";
import { folder, holdfast } from "./command-line.ts";

async function eventually(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const until = performance.now() + 20_000; !(await condition()); await sleep(25)) {
    assert.ok(performance.now() < until, `${what}: not after 20 s`);
  }
}

/** The path of a directory of its own; removed when this program ends. */
async function place(): Promise<string> {
  return (await folder("which-lock")).path;
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}

test("--also: several names, all or none; COMMAND sees a token for each", async () => {
  const url = `sqlite:${join(await place(), "locks.db")}`;
  const shown = holdfast([
    "run",
    "a",
    "--url",
    url,
    "--also",
    "c",
    "--also",
    "b",
    "-c",
    "echo $HOLDFAST_TOKEN $HOLDFAST_HELD",
  ]);
  const { code, stdout } = await shown.finished;
  assert.equal(code, 0);
  const [token = "", held = ""] = stdout.trim().split(" ");
  assert.deepEqual(Object.keys(JSON.parse(held) as object).sort(), ["a", "b", "c"]);
  assert.equal((JSON.parse(held) as Record<string, string>)["a"], token);
  const locks = await connect(url);
  const busy = await locks.acquire("b");
  const refused = await holdfast(["run", "-n", "c", "--url", url, "--also", "b", "--", "true"]).finished;
  assert.equal(refused.code, 75);
  assert.match(refused.stderr, /^holdfast: b is busy: held by/);
  assert.ok(await locks.tryAcquire("c"), "nothing stays behind");
  await busy.release();
  await locks.close();
});

test("--permits: at most so many at once", async () => {
  const url = `sqlite:${join(await place(), "locks.db")}`;
  const locks = await connect(url);
  const semaphore = locks.semaphore("s", { permits: 2 });
  const first = await semaphore.acquire();
  const run = ["run", "-n", "s", "--url", url, "--permits", "2", "--", "true"];
  assert.equal((await holdfast(run).finished).code, 0);
  const second = await semaphore.acquire();
  assert.equal((await holdfast(run).finished).code, 75);
  await first.release();
  await second.release();
  await locks.close();
});

test("--permits and --also: what makes no sense is a usage error", async () => {
  for (const words of [
    ["--permits", "0"],
    ["--permits", "x"],
    ["--permits", "2", "-s"],
    ["--permits", "2", "--also", "b"],
  ]) {
    assert.equal((await holdfast(["run", "a", ...words, "--", "true"]).finished).code, 64, words.join(" "));
  }
  const held = JSON.stringify({ b: "1" });
  const inner = holdfast(["run", "a", "--also", "b", "--", "true"], { env: { HOLDFAST_HELD: held } });
  assert.equal((await inner.finished).code, 64);
});

test("lead: COMMAND's end resigns, with its exit code", async () => {
  const { code, stdout } = await holdfast(["lead", "e", "-c", "echo leads; exit 7"]).finished;
  assert.deepEqual([code, stdout], [7, "leads\n"]);
});

test("lead: a lost term stops COMMAND, and the next term starts it again", async () => {
  const directory = await place();
  const url = `sqlite:${join(directory, "locks.db")}`;
  const file = join(directory, "terms");
  const leading = holdfast(["lead", "e", "--url", url, "-c", `echo $HOLDFAST_TOKEN >>'${file}'; exec sleep 60`]);
  await eventually("the first term", () => linesOf(file).length === 1);
  const locks = await connect(url);
  assert.equal(await locks.evict("e", BigInt(linesOf(file)[0] ?? "0")), true);
  await eventually("the second term", () => linesOf(file).length === 2);
  assert.ok(BigInt(linesOf(file)[1] ?? "0") > BigInt(linesOf(file)[0] ?? "0"));
  leading.child.kill("SIGTERM");
  const { code, stderr } = await leading.finished;
  assert.equal(code, 143);
  assert.match(stderr, /^holdfast: term over \(.*\); standing again for e\n$/);
  assert.equal(await locks.election("e").leader(), null, "resigned");
  await locks.close();
});

test("lead: a signal ends a candidacy", async () => {
  const url = `sqlite:${join(await place(), "locks.db")}`;
  const locks = await connect(url);
  const term = await locks.election("e").campaign();
  const standing = holdfast(["lead", "e", "--url", url, "--", "true"]);
  await eventually("the candidacy", async () => (await locks.query()).pending.length === 1);
  standing.child.kill("SIGINT");
  assert.equal((await standing.finished).code, 130);
  await term.release();
  await locks.close();
});
