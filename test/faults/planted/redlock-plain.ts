/** Redlock as the article's five steps have it, on nodes that come back at once when they have crashed. */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import type { RecordedGrant } from "../../../src/testing/history/index.ts";
import type { PlantedLock } from "./lock.ts";

const KEY = "lock";
const NODE_TIMEOUT_MS = 50;
const RELEASE = 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0';

export class PlainRedlock implements PlantedLock {
  readonly #nodes: readonly Redis[];
  readonly #owner: string;
  readonly #ttlMs: number;

  constructor(ports: readonly number[], owner: string, ttlMs: number) {
    this.#nodes = ports.map((port) => {
      const options = { commandTimeout: NODE_TIMEOUT_MS, maxRetriesPerRequest: 0, enableOfflineQueue: false };
      const node = new Redis({ host: "127.0.0.1", port, ...options, retryStrategy: () => 20 });
      node.on("error", () => {});
      return node;
    });
    this.#owner = owner;
    this.#ttlMs = ttlMs;
  }

  async acquire(): Promise<RecordedGrant> {
    for (;;) {
      const fromMs = performance.now();
      let votes = 0;
      for (const node of this.#nodes) {
        const vote = await node.set(KEY, this.#owner, "PX", this.#ttlMs, "NX").catch(() => null);
        if (vote !== null) votes++;
      }
      const left = (): number => fromMs + this.#ttlMs - performance.now();
      if (votes > this.#nodes.length / 2 && left() > 0) return { remainingMs: () => Math.max(0, left()) };
      await this.release();
      await sleep(10 + 30 * Math.random());
    }
  }

  async release(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.eval(RELEASE, 1, KEY, this.#owner).catch(() => {})));
  }

  die(): void {
    for (const node of this.#nodes) node.disconnect();
  }

  async close(): Promise<void> {
    this.die();
  }
}
