/**
 * `npm run bench [-- engine… --work ID --rounds 5 --ms 1000 --json FILE]`: measures ours, its peers and the raw limit of the same
 * engine in one run. Each engine has one file in works/. Pinned to the last core where `taskset` exists; servers that a
 * work starts are pinned to the first.
 */
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { machine, measure, type Work, type WorkResult } from "./harness.ts";
import { table } from "./report.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    ms: { type: "string", default: "1000" },
    json: { type: "string" },
    /** Only these works, by their ids; repeatable. */
    work: { type: "string", multiple: true, default: [] },
    pinned: { type: "boolean", default: false },
  },
});

const core = cpus().length - 1;
if (!values.pinned && core > 0 && spawnSync("taskset", ["-c", String(core), "true"]).status === 0) {
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1), "--pinned"];
  const outcome = spawnSync("taskset", ["-c", String(core), ...again], { stdio: "inherit" });
  process.exit(outcome.status ?? 1);
}
if (!values.pinned) console.error("taskset is missing or there is one core: unpinned figures are bimodal");

const folder = import.meta.dirname;
const known = globSync("works/*.ts", { cwd: folder })
  .map((file) => basename(file, ".ts"))
  .sort();
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`no such benchmark: ${unknown.join(", ")}; there are ${known.join(", ")}`);
  process.exit(64);
}

const effort = { rounds: Number(values.rounds), roundMs: Number(values.ms) };
const results: WorkResult[] = [];
for (const name of positionals.length > 0 ? positionals : known) {
  const module = (await import(`./works/${name}.ts`)) as { works(): Promise<readonly Work[]> };
  for (const work of await module.works()) {
    if (values.work.length > 0 && !values.work.includes(work.id)) continue;
    const result = await measure(work, effort, (text) => {
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
    });
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
    results.push(result);
    console.log(`${table(result)}\n`);
  }
}
const file = values.json ?? join(folder, "results", `${positionals.join("-") || "all"}.json`);
mkdirSync(join(file, ".."), { recursive: true });
writeFileSync(file, `${JSON.stringify({ at: new Date().toISOString(), machine: machine(), results }, null, 2)}\n`);
console.log(`written: ${file}`);
