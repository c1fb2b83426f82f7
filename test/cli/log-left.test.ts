/** What a run leaves in the folder of its lock file: it does not make its user wait for the disk without need. */
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TemporaryDirectory } from "../../servers/exit-cleanup.ts";
import { folder, holdfast } from "./command-line.ts";

let place: TemporaryDirectory;
before(async () => {
  place = await folder("log-left");
});
after(() => place.remove());

async function token(file: string, words: readonly string[] = []): Promise<bigint> {
  const env = { HOLDFAST_URL: `sqlite:${file}` };
  const command = ["run", "a", ...words, "-c", "echo $HOLDFAST_TOKEN"];
  const { code, stdout, stderr } = await holdfast(command, { env }).finished;
  assert.deepEqual([code, stderr], [0, ""]);
  return BigInt(stdout);
}

const size = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

test("a run leaves the log to the next one, and nothing else", async () => {
  const file = join(place.path, "plain.db");
  const first = await token(file);
  const left = size(`${file}-wal`);
  assert(left > 0, "the log was copied into the lock file");
  assert.deepEqual(readdirSync(`${file}-presence`), []);
  const second = await token(file);
  assert(second > first, `${second} after ${first}`);
  assert(size(`${file}-wal`) > left, "the second run has begun another log");
  const { stdout } = await holdfast(["show", "a"], { env: { HOLDFAST_URL: `sqlite:${file}` } }).finished;
  assert.match(stdout, /is free/);
});

test("--at-least: the place that stays taken is in the lock file before holdfast goes", async () => {
  const file = join(place.path, "at-least.db");
  await token(file, ["--at-least", "10ms"]);
  assert.equal(size(`${file}-wal`), 0);
});
