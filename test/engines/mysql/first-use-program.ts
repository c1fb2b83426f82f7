/** One process of many that use a new database at the same time: says "ready", waits for a line, takes a lock, says its token. */
import { once } from "node:events";
import { connect } from "../../../src/index.ts";

const url = process.argv[2] ?? "";
console.log("ready");
await once(process.stdin, "data");
const locks = await connect(url);
const lock = await locks.acquire("47", { waitMs: 20_000 });
console.log(String(lock.token));
await lock.release();
await locks.close();
process.stdin.destroy();
