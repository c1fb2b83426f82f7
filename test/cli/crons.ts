/** As many crons as there are machines, each with a wall clock of its own (libfaketime), start the same job with `--once`. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ensureDebianPackage } from "../../servers/debian-packages.ts";
import { pause, start } from "./command-line.ts";

export interface Crons {
  readonly directory: string;
  readonly main: string;
  readonly crons: number;
  /** How far their clocks are apart. */
  readonly apartMs: number;
  readonly everyMs: number;
  readonly ticks: number;
}

const JOB = 'echo "$HOLDFAST_TOKEN" >>"$1"; sleep 1';

/** Resolves to how often the job ran in each tick. */
export async function runCrons({ directory, main, crons, apartMs, everyMs, ticks }: Crons): Promise<number[]> {
  const library = await fakeTime();
  const startMs = performance.now() + apartMs;
  // Longer than the clocks are apart, shorter than the pause between two ticks.
  const onceSeconds = Math.round((apartMs + everyMs) / 2 / 1_000);
  const work = Array.from({ length: crons }, async (_, cron) => {
    const aheadMs = Math.round((apartMs * cron) / (crons - 1));
    for (let tick = 0; tick < ticks; tick++) {
      // A clock that is ahead reaches the minute earlier.
      await pause(Math.max(0, startMs + tick * everyMs - aheadMs - performance.now()));
      const words = [main, "run", "nightly", "--once", `${onceSeconds}s`, "--", "/bin/sh", "-c", JOB, "job"];
      const env = {
        HOLDFAST_URL: `sqlite:${join(directory, "locks.db")}`,
        LD_PRELOAD: library,
        FAKETIME: `+${(aheadMs / 1_000).toFixed(1)}s`,
        FAKETIME_DONT_FAKE_MONOTONIC: "1",
        FAKETIME_DISABLE_SHM: "1",
      };
      const { code, stderr } = await start(process.execPath, [...words, join(directory, `tick-${tick}`)], { env })
        .finished;
      assert.deepEqual([code, stderr], [0, ""]);
    }
  });
  await Promise.all(work);
  return Array.from({ length: ticks }, (_, tick) => {
    const file = join(directory, `tick-${tick}`);
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").length : 0;
  });
}

async function fakeTime(): Promise<string> {
  const find = (): string | undefined => {
    const folders = readdirSync("/usr/lib", { withFileTypes: true }).filter((each) => each.isDirectory());
    const paths = folders.map(({ name }) => `/usr/lib/${name}/faketime/libfaketime.so.1`);
    return paths.find((path) => existsSync(path));
  };
  await ensureDebianPackage({ what: "libfaketime", packages: ["libfaketime"], present: () => find() !== undefined });
  return find() ?? assert.fail();
}
