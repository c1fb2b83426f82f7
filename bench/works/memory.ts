/** The memory engine beside async-mutex. */
import { Mutex } from "async-mutex";
import { connect } from "../../src/index.ts";
import { type Contender, loop, type Work } from "../harness.ts";

function ours(workers: number): Contender {
  return {
    name: "holdfast memory:",
    kind: "ours",
    async start() {
      const locks = await connect("memory:");
      return {
        run: (ms) =>
          loop(ms, workers, async () => {
            const lock = await locks.acquire("bench");
            await lock.release();
          }),
        stop: () => locks.close(),
      };
    },
  };
}

function asyncMutex(workers: number): Contender {
  return {
    name: "async-mutex",
    kind: "peer",
    async start() {
      const mutex = new Mutex();
      return {
        run: (ms) =>
          loop(ms, workers, async () => {
            const release = await mutex.acquire();
            release();
          }),
        stop: async () => {},
      };
    },
  };
}

export async function works(): Promise<readonly Work[]> {
  const floors = [{ than: "async-mutex", atLeast: 0.3 }];
  return [
    {
      id: "memory-one",
      title: "Memory, lock and unlock, one at a time",
      unit: "pairs a second",
      contenders: [ours(1), asyncMutex(1)],
      floors,
    },
    {
      id: "memory-many",
      title: "Memory, 100 waiters on one name",
      unit: "hand-offs a second",
      contenders: [ours(100), asyncMutex(100)],
      floors: [],
    },
  ];
}
