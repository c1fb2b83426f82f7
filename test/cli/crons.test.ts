/** `--once` with many crons. With the full distances: `node test/cli/long-runs.ts crons`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { folder, MAIN } from "./command-line.ts";
import { runCrons } from "./crons.ts";

test("eight crons whose clocks are 4 s apart run a job once per tick", async () => {
  const directory = await folder("crons");
  const crons = { directory: directory.path, main: MAIN, crons: 8, apartMs: 4_000, everyMs: 46_000, ticks: 2 };
  assert.deepEqual(await runCrons(crons), [1, 1]);
  await directory.remove();
});
