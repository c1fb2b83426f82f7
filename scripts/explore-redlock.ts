/**
 * Explores larger cases of redlock than the tests do; takes minutes and gigabytes.
 *
 *   node scripts/explore-redlock.ts tokens nodes=3 ballots=3 repeats=1
 *   node scripts/explore-redlock.ts tokens nodes=3 ballots=2 crashes=2 readmission=right
 *   node scripts/explore-redlock.ts leases nodes=3 ballots=2 renewals=2 lease=2 crashes=1
 *
 * Options are those of TokenModel and LeaseModel in test/simulation/redlock; `proposals=3,1` is a list; `most=50000000` bounds
 * the states. Exits with 1 when something breaks, and prints how.
 */
import { explore } from "../test/simulation/redlock/explorer.ts";
import { LeaseModel, type LeaseOptions } from "../test/simulation/redlock/lease-model.ts";
import { TokenModel, type TokenOptions } from "../test/simulation/redlock/token-model.ts";

type Value = number | boolean | string | number[];

const [kind = "tokens", ...given] = process.argv.slice(2);
const options: Record<string, Value> = { nodes: 3, ballots: 2, ...Object.fromEntries(given.map(parse)) };
const { most = 50_000_000, ...rest } = options;

function parse(text: string): [string, Value] {
  const [name = "", value = ""] = text.split("=");
  if (value.includes(",")) return [name, value.split(",").map(Number)];
  if (value === "true" || value === "false") return [name, value === "true"];
  return [name, Number.isNaN(Number(value)) ? value : Number(value)];
}

const model =
  kind === "leases" ? new LeaseModel(rest as unknown as LeaseOptions) : new TokenModel(rest as unknown as TokenOptions);
const startMs = performance.now();
const { states, complete, violation, trace } = explore(model, Number(most));
const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
console.log(`${states} states in ${seconds} s${complete ? "" : ", not all"}: ${violation ?? "nothing breaks"}`);
for (const line of trace) console.log(`  ${line}`);
process.exitCode = violation === undefined ? 0 : 1;
