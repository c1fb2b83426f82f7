/** `npm run simulate -- --seeds 5000 --from 1`: runs seeds of the simulation and prints those that break a promise. */
import { parseArgs } from "node:util";
import { simulate } from "../src/testing/simulation/run.ts";

const { values } = parseArgs({
  options: { seeds: { type: "string", default: "1000" }, from: { type: "string", default: "1" } },
});
const from = Number(values.from);
const seeds = Number(values.seeds);
const startedAt = performance.now();
let grants = 0;
let broken = 0;
for (let seed = from; seed < from + seeds; seed++) {
  const result = await simulate(seed);
  grants += result.grants;
  if (result.violations.length > 0) {
    broken++;
    console.log(`seed ${seed}: ${result.violations.join("; ")}`);
  }
  if (process.stderr.isTTY) process.stderr.write(`\r${seed - from + 1} of ${seeds} seeds, ${broken} broken`);
}
const seconds = (performance.now() - startedAt) / 1000;
console.log(
  `\n${seeds} seeds, ${grants} grants, ${broken} broken, ${Math.round((seeds / seconds) * 60)} seeds a minute`,
);
process.exitCode = broken > 0 ? 1 : 0;
