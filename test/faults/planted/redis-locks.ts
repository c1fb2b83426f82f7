/** Locks on one Redis as the article writes them. */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import type { RecordedGrant } from "../../../src/testing/history/index.ts";
import type { Doors, PlantedLock } from "./lock.ts";

const KEY = "lock";
const POLL_MS = 10;

abstract class RedisLock implements PlantedLock {
  protected readonly redis: Redis;
  protected readonly owner: string;
  protected readonly ttlMs: number;

  constructor(port: number, owner: string, ttlMs: number) {
    this.redis = new Redis({ host: "127.0.0.1", port });
    this.redis.on("error", () => {});
    this.owner = owner;
    this.ttlMs = ttlMs;
  }

  abstract acquire(): Promise<RecordedGrant | undefined>;
  abstract release(): Promise<void>;

  die(): void {
    this.redis.disconnect();
  }

  async close(): Promise<void> {
    this.redis.disconnect();
  }
}

/** "Delete the key": whoever's it is by then. The holder itself does respect its deadline. */
export class DeletesAnybodys extends RedisLock {
  async acquire(): Promise<RecordedGrant> {
    for (;;) {
      const fromMs = performance.now();
      if ((await this.redis.set(KEY, this.owner, "PX", this.ttlMs, "NX")) !== null)
        return { remainingMs: () => Math.max(0, fromMs + this.ttlMs - performance.now()) };
      await sleep(POLL_MS);
    }
  }

  async release(): Promise<void> {
    await this.redis.del(KEY);
  }
}

/** Only the owner deletes; but the key's end is not the work's end, and no write says which holder it is from. */
export class HasNoToken extends RedisLock {
  async acquire(): Promise<undefined> {
    while ((await this.redis.set(KEY, this.owner, "PX", this.ttlMs, "NX")) === null) await sleep(POLL_MS);
  }

  async release(): Promise<void> {
    const script = 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0';
    await this.redis.eval(script, 1, KEY, this.owner);
  }
}

/** "First look whether the key is there, then write one's name on it": two may look before one writes. */
export class LooksFirst extends RedisLock {
  readonly #doors: Doors;

  constructor(port: number, owner: string, ttlMs: number, doors: Doors) {
    super(port, owner, ttlMs);
    this.#doors = doors;
  }

  async acquire(): Promise<undefined> {
    while ((await this.redis.exists(KEY)) === 1) await sleep(POLL_MS);
    await this.#doors.pass(`${this.owner} has looked`);
    await this.redis.set(KEY, this.owner, "PX", this.ttlMs);
  }

  async release(): Promise<void> {
    await this.redis.del(KEY);
  }
}
