/** The first promise a newcomer looks for: nothing is lost when many processes write one file under the lock. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const PROCESSES = 8;
const TIMES = 500;

test(`eight processes count to ${PROCESSES * TIMES} in one file through the library`, async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-counter-"));
  try {
    const file = join(directory, "count");
    writeFileSync(file, "0");
    const worker = join(import.meta.dirname, "counter-worker.ts");
    const args = [...process.execArgv, worker, `sqlite:${join(directory, "locks.db")}`, file, String(TIMES)];
    const workers = Array.from({ length: PROCESSES }, () => spawn(process.execPath, args, { stdio: "inherit" }));
    const codes = await Promise.all(workers.map(async (each) => (await once(each, "exit"))[0] as number | null));
    assert.deepEqual(codes, Array(PROCESSES).fill(0));
    assert.equal(Number(readFileSync(file, "utf8")), PROCESSES * TIMES);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
