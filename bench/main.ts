/**
 * `npm run bench [-- engine… --work ID --rounds 5 --ms 1000 --json FILE]`: measures ours, its peers and the raw limit of the same
 * engine in one run. Each engine has one file in works/; `costs` is what is not a rate. A run of everything renders
 * docs/benchmarks.md. Pinned to the last core where `taskset` exists; servers that a
 * work starts are pinned to the first.
 */
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { type Cost, costs } from "./costs.ts";
import { machine, measure, type Work, type WorkResult } from "./harness.ts";
import { renderPage } from "./page.ts";
import { table } from "./report.ts";
import { versions } from "./versions.ts";

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
  .concat("costs")
  .sort();
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`no such benchmark: ${unknown.join(", ")}; there are ${known.join(", ")}`);
  process.exit(64);
}

const effort = { rounds: Number(values.rounds), roundMs: Number(values.ms) };
const results: WorkResult[] = [];
let found: readonly Cost[] = [];
const showProgress = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
};
for (const name of positionals.length > 0 ? positionals : known) {
  if (name === "costs") {
    found = await costs((text) => console.error(`costs: ${text}`));
    for (const { engine, what, value, unit } of found)
      console.log(`${engine}: ${what}: ${value.toPrecision(4)} ${unit}`);
    continue;
  }
  const module = (await import(`./works/${name}.ts`)) as { works(): Promise<readonly Work[]> };
  for (const work of await module.works()) {
    if (values.work.length > 0 && !values.work.includes(work.id)) continue;
    const result = await measure(work, effort, showProgress);
    showProgress("");
    results.push(result);
    console.log(`${table(result)}\n`);
  }
}
const file = values.json ?? join(folder, "results", `${positionals.join("-") || "all"}.json`);
mkdirSync(join(file, ".."), { recursive: true });
const command = `npm run bench -- ${process.argv
  .slice(2)
  .filter((word) => word !== "--pinned")
  .join(" ")}`;
const run = { at: new Date().toISOString(), machine: { ...machine(), ...versions() }, command, results, costs: found };
writeFileSync(file, `${JSON.stringify(run, null, 2)}\n`);
console.log(`written: ${file}`);
if (positionals.length === 0 && values.work.length === 0) {
  await renderPage(run);
  console.log("written: docs/benchmarks.md");
}
