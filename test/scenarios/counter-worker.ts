/** Adds one to the number in a file, again and again, each time under the lock. Arguments: URL, file, times. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../src/index.ts";

const [url = "", file = "", times = "0"] = process.argv.slice(2);
const locks = await connect(url);
let lastToken = 0n;
for (let round = 0; round < Number(times); round++) {
  await locks.request("counter", async (lock) => {
    if (lock.token <= lastToken) throw new Error(`token ${lock.token} after ${lastToken}`);
    lastToken = lock.token;
    const count = Number(readFileSync(file, "utf8"));
    await sleep(1);
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, String(count + 1));
    renameSync(draft, file);
  });
}
await locks.close();
