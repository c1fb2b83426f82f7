/**
 * A holder that is paused at the worst moment: between looking at its lock and writing.
 * Arguments: the URL of the locks, the kind of the guarded thing, where that is. Prints one JSON line at the end.
 */
import { connect } from "../../src/index.ts";
import { openThing, type Kind } from "./guarded-thing.ts";

const [url = "", kind = "", where = ""] = process.argv.slice(2);
const thing = await openThing(kind as Kind, where);
const locks = await connect(url, { ttlMs: 2_000 });
const lock = await locks.acquire("account");
await thing.enter(lock.token);
await thing.write(lock.token, "first by A");
const heldBefore = lock.isHeld();

process.kill(process.pid, "SIGSTOP");

// Wakes here, long after. It has looked at the lock already and does not look again.
const refused = await thing.write(lock.token, "late by A").then(
  () => "nothing",
  (error: { code?: string }) => error.code,
);
console.log(JSON.stringify({ heldBefore, refused, heldAfter: lock.isHeld(), token: String(lock.token) }));
process.exit();
