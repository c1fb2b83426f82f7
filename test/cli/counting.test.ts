/** Many runs side by side. The full numbers: `node test/cli/long-runs.ts`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MAIN, folder } from "./command-line.ts";
import { count, SeededRandom } from "./counting.ts";

test("eight processes, each several runs: every increment counts", async () => {
  const directory = await folder("counting");
  const { number } = await count({ directory: directory.path, main: MAIN, workers: 8, times: 3 });
  assert.equal(number, 24);
  await directory.remove();
});

test("holders are killed in the middle of their work, command and supervisor: nothing is lost, nobody runs beside another", async (t) => {
  const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 2 ** 31);
  t.diagnostic(`seed ${seed}`);
  const directory = await folder("counting");
  const random = new SeededRandom(seed);
  const { handOffs } = await count({ directory: directory.path, main: MAIN, workers: 8, times: 3, random });
  assert(Math.max(...handOffs.map(({ ms }) => ms)) < 10_000, `slow hand-offs: ${JSON.stringify(handOffs)}`);
  await directory.remove();
});
