/** Faults on real servers, drawn from a seed, with every history judged. `npm run faults -- --help`; docs/faults.md. */
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { format, resolveConfig } from "prettier";
import { DEPLOYMENTS } from "../test/faults/suite/deployments/index.ts";
import { details, page, table } from "../test/faults/suite/report.ts";
import { isClean, type RunResult } from "../test/faults/suite/result.ts";
import { runFaults } from "../test/faults/suite/run.ts";

const HELP = `npm run faults -- --engine redis --seed 42 --minutes 5
npm run faults -- --engine mysql --engine zookeeper      several, one after the other
npm run faults                                           all of them, a minute each
npm run faults -- --json                                 results as JSON on standard output, everything else on standard error
npm run faults -- --keep DIRECTORY                       keeps the histories of runs in which something was broken
npm run faults -- --page results.json …                  no run: writes docs/faults.md and docs/faults.json from saved results
engines: ${Object.keys(DEPLOYMENTS).join(", ")}, all`;

function parsed() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        engine: { type: "string", multiple: true, default: ["all"] },
        seed: { type: "string", multiple: true },
        minutes: { type: "string", default: "1" },
        keep: { type: "string" },
        json: { type: "boolean", default: false },
        page: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    return usage(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`);
  }
}

const { values, positionals } = parsed();
if (values.help) {
  console.log(HELP);
  process.exit();
}

const PAGE = "docs/faults.md";
const SAVED = "docs/faults.json";

function usage(message: string): never {
  console.error(message);
  process.exit(2);
}

if (values.page) {
  const results = positionals.flatMap((file) => JSON.parse(readFileSync(file, "utf8")) as RunResult[]);
  writeFileSync(SAVED, await format(JSON.stringify(results), { parser: "json" }));
  writeFileSync(PAGE, await format(page(results), { ...(await resolveConfig(PAGE)), parser: "markdown" }));
  process.exit();
}

const engines = values.engine.includes("all") ? Object.keys(DEPLOYMENTS) : values.engine;
for (const engine of engines) {
  if (!(engine in DEPLOYMENTS)) usage(`no engine ${engine}; there are ${Object.keys(DEPLOYMENTS).join(", ")}, and all`);
}
const minutes = Number(values.minutes);
if (!(minutes > 0 && minutes <= 600)) usage("--minutes is a number above 0");
const seeds = (values.seed ?? [String(Math.floor(Math.random() * 1e6))]).map(Number);
if (!seeds.every((seed) => Number.isSafeInteger(seed) && seed >= 0)) usage("--seed is a whole number");

const say = values.json ? console.error : console.log;
const results: RunResult[] = [];
for (const engine of engines) {
  for (const seed of seeds) {
    say(`${engine}, seed ${seed}: ${minutes} minutes of faults`);
    const result = await runFaults({ engine, seed, minutes, keep: values.keep, progress: (line) => say(`  ${line}`) });
    results.push(result);
    say(details(result));
  }
}
say(`\n${table(results)}`);
if (values.json) console.log(JSON.stringify(results, null, 2));
process.exitCode = results.every(isClean) ? 0 : 1;
