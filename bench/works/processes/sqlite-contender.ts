/** One of the processes of `sqlite-processes`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import lockfile from "proper-lockfile";
import { connect } from "../../../src/index.ts";
import { type Acquire, contend } from "./contending.ts";

/** "holdfast", or how often proper-lockfile asks, in ms. */
export type Locker = "holdfast" | readonly [minTimeout: number, maxTimeout: number];

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

const [kind = "", folder = ""] = process.argv.slice(2);
contend(await locker(JSON.parse(kind) as Locker, folder), 1);
