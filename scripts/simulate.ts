/**
 * `npm run simulate -- --world lease --seeds 5000 --from 1`: runs seeds of a simulated world, or of all, in turn. A seed that
 * breaks a promise is printed with the shortest program that breaks it in the same way, and a time line.
 */
import { parseArgs } from "node:util";
import { play, programOf, report, type SettingKind } from "../test/simulation/play.ts";
import { WORLDS } from "../test/simulation/worlds/index.ts";

const { values } = parseArgs({
  options: {
    world: { type: "string" },
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
  },
});
const from = Number(values.from);
const seeds = Number(values.seeds);
const chosen = WORLDS.filter(({ name }) => values.world === undefined || values.world === name);
if (chosen.length === 0) {
  console.error(`there are these worlds: ${WORLDS.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
// Worlds restart their servers on purpose; the engines warn of it.
process.removeAllListeners("warning");

/** Returns how many seeds are broken. */
async function explore(kind: SettingKind): Promise<number> {
  const startedAt = performance.now();
  let grants = 0;
  let events = 0;
  let broken = 0;
  for (let seed = from; seed < from + seeds; seed++) {
    const outcome = await play(programOf(seed, kind), kind);
    grants += outcome.grants;
    events += outcome.events;
    if (outcome.complaints.length > 0) {
      broken++;
      console.log(`${await report(outcome, kind)}\n`);
    }
    if (process.stderr.isTTY)
      process.stderr.write(`\r${kind.name}: ${seed - from + 1} of ${seeds} seeds, ${broken} broken`);
  }
  const minutes = (performance.now() - startedAt) / 60_000;
  if (process.stderr.isTTY) process.stderr.write("\r");
  const rate = Math.round(seeds / minutes).toLocaleString("en");
  console.log(
    `${kind.name}: ${seeds} seeds, ${grants} grants, ${events} events, ${broken} broken, ${rate} seeds a minute`,
  );
  return broken;
}

let broken = 0;
for (const kind of chosen) broken += await explore(kind);
process.exitCode = broken > 0 ? 1 : 0;
