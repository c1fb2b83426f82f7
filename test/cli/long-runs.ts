/**
 * The full numbers behind counting.test.ts and crons.test.ts; too long for every day.
 * Usage: node test/cli/long-runs.ts [count] [kill] [crons] [--main dist/cli/main.cjs] [--times N] [--seed N]
 */
import { resolve } from "node:path";
import { test } from "node:test";
import { parseArgs } from "node:util";
import assert from "node:assert/strict";
import { folder, MAIN } from "./command-line.ts";
import { count, SeededRandom } from "./counting.ts";
import { runCrons } from "./crons.ts";

const { values, positionals } = parseArgs({
  options: {
    main: { type: "string", default: MAIN },
    /** Runs of each of the eight processes; by default the full numbers. */
    times: { type: "string" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
  },
  allowPositionals: true,
});
const wanted = (what: string): boolean => positionals.length === 0 || positionals.includes(what);
const main = resolve(values.main);
const times = values.times === undefined ? undefined : Number(values.times);

if (wanted("count")) {
  test("8 processes x 500 runs count to exactly 4,000", async (t) => {
    const place = await folder("count");
    const started = performance.now();
    const { number } = await count({ directory: place.path, main, workers: 8, times: times ?? 500 });
    t.diagnostic(`${number} in ${((performance.now() - started) / 1_000).toFixed(0)} s`);
    assert.equal(number, 8 * (times ?? 500));
    await place.remove();
  });
}

if (wanted("kill")) {
  test("8 x 50 runs while holders are killed", async (t) => {
    const place = await folder("kill");
    const random = new SeededRandom(Number(values.seed));
    const { number, kills, handOffs } = await count({
      directory: place.path,
      main,
      workers: 8,
      times: times ?? 50,
      random,
    });
    t.diagnostic(`seed ${values.seed}: counted to ${number}; killed ${JSON.stringify(kills)}`);
    for (const [victim, each] of Object.entries(Object.groupBy(handOffs, (handOff) => handOff.victim))) {
      const sorted = each.map(({ ms }) => Math.round(ms)).toSorted((left, right) => left - right);
      t.diagnostic(
        `${victim} killed, next begins: median ${sorted[sorted.length >> 1]} ms, longest ${sorted.at(-1)} ms`,
      );
    }
    assert(Math.max(...handOffs.map(({ ms }) => ms)) < 1_000, "the next one did not have the lock within a second");
    await place.remove();
  });
}

if (wanted("crons")) {
  test("eight crons whose clocks are up to 20 s apart run a job of one second once per tick", async (t) => {
    const place = await folder("crons");
    const ran = await runCrons({ directory: place.path, main, crons: 8, apartMs: 20_000, everyMs: 60_000, ticks: 3 });
    t.diagnostic(`ran ${ran.join(", ")} times`);
    assert.deepEqual(ran, [1, 1, 1]);
    await place.remove();
  });
}
