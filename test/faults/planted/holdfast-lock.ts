/** Holdfast's own lock in the place of a planted one. It dies as a process does that gets no processor any more. */
import { connect, type Engine, type HeldLock, type LockManager } from "../../../src/index.ts";
import { PausableClock } from "../../../src/testing/pausable-clock.ts";
import type { PlantedLock } from "./lock.ts";
import { TTL_MS } from "./scenes.ts";

export class HoldfastLock implements PlantedLock {
  readonly #locks: LockManager;
  readonly #clock: PausableClock;
  #held: HeldLock | undefined;

  private constructor(locks: LockManager, clock: PausableClock) {
    this.#locks = locks;
    this.#clock = clock;
  }

  static async connect(engine: (clock: PausableClock) => Engine): Promise<HoldfastLock> {
    const clock = new PausableClock();
    return new HoldfastLock(await connect(engine(clock), { ttlMs: TTL_MS }), clock);
  }

  async acquire(): Promise<HeldLock> {
    return (this.#held = await this.#locks.acquire("lock"));
  }

  async release(): Promise<void> {
    await this.#held?.release();
  }

  die(): void {
    this.#clock.pause();
  }

  async close(): Promise<void> {
    this.#clock.resume();
    await this.#locks.close();
  }
}
