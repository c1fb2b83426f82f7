/** `readWriteLock`: many readers or one writer. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { neverThrows, rejectsWith, stillPending, within } from "../expect.ts";

const refusesReaders: NonNullable<CaseDefinition["otherwise"]> = {
  title: "read-write locks are not offered: ConfigError at the call",
  body: async (stage) => {
    const locks = await stage.connect();
    assert.throws(() => locks.readWriteLock(stage.name), { code: "CONFIG" });
  },
};

export const READ_WRITE_LOCK: readonly CaseDefinition[] = [
  {
    id: "readWriteLock/share",
    title: "readers of several connections share; a writer is alone",
    needs: { traits: ["shared"] },
    otherwise: refusesReaders,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const [one, two] = [left.readWriteLock(stage.name), right.readWriteLock(stage.name)];
      const readers = [await one.read.acquire(), await two.read.acquire(), await one.read.acquire()];
      assert.equal(await two.write.tryAcquire(), null);
      for (const reader of readers) await reader.release();
      const writer = await two.write.acquire();
      assert.equal(await one.read.tryAcquire(), null);
      assert.equal(await one.write.tryAcquire(), null);
      await writer.release();
    },
  },
  {
    id: "readWriteLock/starvation",
    title: "readers that come behind a waiting writer wait behind it",
    needs: { traits: ["shared", "fair"] },
    otherwise: refusesReaders,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const [one, two] = [left.readWriteLock(stage.name), right.readWriteLock(stage.name)];
      const reader = await one.read.acquire();
      const writing = two.write.acquire();
      await stage.pending(left, 1);
      assert.equal(await one.read.tryAcquire(), null);
      const reading = [one.read.acquire(), two.read.acquire()];
      await stage.pending(left, 3);
      await reader.release();
      const writer = await within(stage.hangMs, "the writer", writing);
      await stillPending(50, "a reader beside the writer", Promise.race(reading));
      await writer.release();
      for (const lock of await within(stage.hangMs, "the readers", Promise.all(reading))) await lock.release();
    },
  },
  {
    id: "readWriteLock/upgrade",
    title: "write inside a read callback is refused instead of waiting for itself",
    needs: { traits: ["shared"] },
    otherwise: refusesReaders,
    body: async (stage) => {
      const locks = await stage.connect();
      const { read, write } = locks.readWriteLock(stage.name);
      await read.request(async (lock) => {
        for (const attempt of [() => write.request(() => {}), () => write.acquire(), () => write.tryAcquire()]) {
          await rejectsWith("NOT_SUPPORTED", neverThrows<unknown>(attempt));
        }
        assert.ok(lock.isHeld());
      });
      await write.request(() => {});
    },
  },
];
