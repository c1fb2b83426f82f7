/** `readWriteLock`: readers share, a writer is alone, nobody overtakes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../src/index.ts";

test("readers share, a writer is alone", async () => {
  const locks = await connect("memory:");
  const { read, write } = locks.readWriteLock("r");
  const readers = [await read.acquire(), await read.acquire(), await read.acquire()];
  assert.equal(await write.tryAcquire(), null);
  for (const reader of readers) await reader.release();
  const writer = await write.acquire();
  assert.equal(await read.tryAcquire(), null);
  assert.equal(await write.tryAcquire(), null);
  await writer.release();
  await locks.close();
});

test("a waiting writer does not starve: readers that come later wait behind it, and then share", async () => {
  const locks = await connect("memory:");
  const { read, write } = locks.readWriteLock("r");
  const order: string[] = [];
  const reader = await read.acquire();
  const writing = write.request(() => void order.push("write"));
  assert.equal(await read.tryAcquire(), null, "no overtaking");
  let together = 0;
  let most = 0;
  const late = [1, 2, 3].map(() =>
    read.request(async () => {
      order.push("read");
      most = Math.max(most, ++together);
      await new Promise((resolve) => setTimeout(resolve, 10));
      together--;
    }),
  );
  await reader.release();
  await Promise.all([writing, ...late]);
  assert.deepEqual(order, ["write", "read", "read", "read"]);
  assert.equal(most, 3);
  await locks.close();
});

test("write inside read of the same scope is refused instead of waiting for itself", async () => {
  const locks = await connect("memory:");
  const { read, write } = locks.readWriteLock("r");
  await read.request(async (reader) => {
    await assert.rejects(
      write.request(() => 0),
      { code: "NOT_SUPPORTED" },
    );
    await assert.rejects(write.acquire(), { code: "NOT_SUPPORTED" });
    await assert.rejects(write.tryAcquire(), { code: "NOT_SUPPORTED" });
    await assert.rejects(locks.readWriteLock("r").write.acquire(), { code: "NOT_SUPPORTED" }, "by name");
    const other = locks.readWriteLock("other");
    await other.write.request(() => 0);
    await read.request(() => 0);
    assert.ok(reader.isHeld());
  });
  await write.request(() => 0);
  await locks.close();
});

test("write asked for by another task while this one reads just waits", async () => {
  const locks = await connect("memory:");
  const { read, write } = locks.readWriteLock("r");
  let outside: Promise<string> | undefined;
  const entered = Promise.withResolvers<void>();
  const leave = Promise.withResolvers<void>();
  const reading = read.request(async () => {
    entered.resolve();
    await leave.promise;
  });
  await entered.promise;
  outside = write.request(() => "written");
  leave.resolve();
  assert.equal(await outside, "written");
  await reading;
  await locks.close();
});
