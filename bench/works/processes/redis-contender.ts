/** One of the processes of `redis-processes`. */
import { connect } from "../../../src/index.ts";
import { RIVALS } from "../peers/redis-locks.ts";
import { type Acquire, contend } from "./contending.ts";

async function locker(name: string, port: number, pollMs: number): Promise<Acquire> {
  const open = RIVALS[name];
  if (open !== undefined) {
    const { lock } = await open(port, pollMs);
    return () => lock("contended");
  }
  const locks = await connect(`redis://127.0.0.1:${port}`);
  return async () => {
    const held = await locks.acquire("contended");
    return () => held.release();
  };
}

const [name = "", port, workers, pollMs] = process.argv.slice(2);
contend(await locker(name, Number(port), Number(pollMs)), Number(workers));
