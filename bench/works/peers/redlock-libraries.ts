/** Other Redlock libraries, each with its defaults but for the number of tries and automatic extension, which is off. */
import { createRequire } from "node:module";
import type { Redis } from "ioredis";
import { RedlockMutex } from "redis-semaphore";
import { createRedlock, IoredisAdapter } from "redlock-universal";

/** Locks and unlocks once. */
type Cycle = (name: string) => Promise<void>;

export interface Peer {
  readonly name: string;
  make(clients: readonly Redis[], ttlMs: number): Cycle;
}

/** What versions 4 and 5 of `redlock` have in common with what is used here; version 4 has no types. */
interface RedlockClass<LockVerb extends string> {
  new (
    clients: Iterable<Redis>,
    settings: object,
  ): Record<LockVerb, (names: string | string[], ttlMs: number) => Promise<Held>>;
}

interface Held {
  unlock(): Promise<unknown>;
  release(): Promise<unknown>;
}

const require = createRequire(import.meta.url);
const Redlock4 = require("redlock4") as RedlockClass<"lock">;
const { default: Redlock5 } = require("redlock5") as { default: RedlockClass<"acquire"> };

export const PEERS: readonly Peer[] = [
  {
    name: "redlock 4",
    make(clients, ttlMs) {
      const redlock = new Redlock4(clients, { retryCount: 10 });
      return async (name) => void (await (await redlock.lock(name, ttlMs)).unlock());
    },
  },
  {
    name: "redlock 5-beta",
    make(clients, ttlMs) {
      const redlock = new Redlock5(clients, { retryCount: 10 });
      return async (name) => void (await (await redlock.acquire([name], ttlMs)).release());
    },
  },
  {
    name: "redlock-universal",
    make(clients, ttlMs) {
      const adapters = clients.map((client) => new IoredisAdapter(client));
      return async (name) => {
        const lock = createRedlock({ adapters, key: name, ttl: ttlMs });
        await lock.release(await lock.acquire());
      };
    },
  },
  {
    name: "redis-semaphore RedlockMutex",
    make(clients, ttlMs) {
      return async (name) => {
        const mutex = new RedlockMutex([...clients], name, { lockTimeout: ttlMs, refreshInterval: 0 });
        await mutex.acquire();
        await mutex.release();
      };
    },
  },
];
