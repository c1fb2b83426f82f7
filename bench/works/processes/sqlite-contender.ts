/** One of the processes of `sqlite-processes`: takes and gives back one lock for as long as it is told to. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import lockfile from "proper-lockfile";
import { connect } from "../../../src/index.ts";

/** "holdfast", or how often proper-lockfile asks, in ms. */
export type Locker = "holdfast" | readonly [minTimeout: number, maxTimeout: number];
/** When it was inside, on the monotonic clock that all processes share, in ms. */
export type Span = readonly [from: number, to: number];

type Acquire = () => Promise<() => Promise<void>>;

async function locker(kind: Locker, folder: string): Promise<Acquire> {
  if (kind === "holdfast") {
    const locks = await connect(`sqlite:${join(folder, "locks.db")}`);
    return async () => {
      const lock = await locks.acquire("contended");
      return () => lock.release();
    };
  }
  const file = join(folder, "contended");
  writeFileSync(file, "", { flag: "a" });
  const [minTimeout, maxTimeout] = kind;
  const retries = { forever: true, factor: 1, minTimeout, maxTimeout, randomize: true };
  return () => lockfile.lock(file, { retries });
}

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

const [kind = "", folder = ""] = process.argv.slice(2);
const acquire = await locker(JSON.parse(kind) as Locker, folder);
process.on("message", (ms: number) => {
  void (async () => {
    const spans: Span[] = [];
    const until = nowMs() + ms;
    while (nowMs() < until) {
      const release = await acquire();
      const from = nowMs();
      spans.push([from, nowMs()]);
      await release();
    }
    process.send?.(spans);
  })();
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");
