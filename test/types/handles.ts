/** What a handle lets its user write. Compiled, never run. */
import { connect, type HeldLock, type LockManager } from "../../src/index.ts";

const locks: LockManager = await connect("memory:", { ttlMs: 1_000 });

async function released(): Promise<bigint> {
  await using lock = await locks.acquire("name");
  return lock.token;
}

async function releasedManager(): Promise<void> {
  await using manager = await connect("memory:");
  await manager.tryAcquire("name");
}

async function forgotten(): Promise<bigint> {
  // @ts-expect-error A lock is released by a promise: `using` without `await` would not wait for it.
  using lock = await locks.acquire("name");
  return lock.token;
}

async function maybe(): Promise<void> {
  const lock = await locks.tryAcquire("name");
  // @ts-expect-error It may be null.
  lock.assertHeld();
  await lock?.release();
}

function json(lock: HeldLock): string {
  const { token }: { token: string } = lock.toJSON();
  // @ts-expect-error A token is larger than a number may be.
  const wrong: number = lock.token;
  // @ts-expect-error Nobody sets it from outside.
  lock.token = 1n;
  return token + wrong;
}

export { released, releasedManager, forgotten, maybe, json };
