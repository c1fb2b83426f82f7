/** `semaphore`: at most so many, each with a lease of its own; the number may change while in use. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../src/index.ts";
import { memory } from "../../../src/engines/memory/index.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

test("so many at once and not one more, in order", async () => {
  const locks = await connect("memory:");
  const semaphore = locks.semaphore("s", { permits: 3 });
  let inside = 0;
  let most = 0;
  const order: number[] = [];
  const work = Array.from({ length: 10 }, (_, index) =>
    semaphore.request(async () => {
      order.push(index);
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside--;
    }),
  );
  await Promise.all(work);
  assert.equal(most, 3);
  assert.deepEqual(
    order,
    order.toSorted((left, right) => left - right),
  );
  await locks.close();
});

test("permits changed while in use: the smallest of those held and the own one counts", async () => {
  const locks = await connect("memory:");
  const permits = (count: number) => locks.semaphore("s", { permits: count });
  const first = await permits(3).acquire();
  const second = await permits(3).acquire();
  assert.equal(await permits(2).tryAcquire(), null, "lowered: two are held already");
  const third = await permits(5).acquire();
  assert.equal(await permits(5).tryAcquire(), null, "raised, but those held still say three");
  await first.release();
  await second.release();
  const more = [await permits(5).acquire(), await permits(5).acquire()];
  assert.equal(await permits(3).tryAcquire(), null);
  for (const lock of [third, ...more]) await lock.release();
  await locks.close();
});

test("each permit has a lease of its own, and a token of its own", async () => {
  const clock = new ManualClock();
  const locks = await connect(memory({ clock }));
  const semaphore = locks.semaphore("s", { permits: 2 });
  const short = await semaphore.acquire({ maxHoldMs: 1_000 });
  const long = await semaphore.acquire();
  assert.ok(long.token > short.token);
  await clock.advance(1_000);
  assert.equal(short.isHeld(), false);
  assert.ok(long.isHeld());
  assert.ok(await semaphore.tryAcquire());
  await locks.close();
});

test("permits with a minimum hold are a rate limit", async () => {
  const clock = new ManualClock();
  const locks = await connect(memory({ clock }));
  const tenASecond = locks.semaphore("api", { permits: 10, minHoldMs: 1_000 });
  let calls = 0;
  const work = Promise.all(Array.from({ length: 25 }, () => tenASecond.request(() => void calls++)));
  await clock.advance(0);
  assert.equal(calls, 10);
  await clock.advance(1_010);
  assert.equal(calls, 20);
  await clock.advance(1_010);
  assert.equal(calls, 25);
  await work;
  await locks.close();
});

test("permits are an integer from 1", async () => {
  const locks = await connect("memory:");
  for (const permits of [0, -1, 1.5, Number.NaN, Infinity, "3", undefined]) {
    assert.throws(() => locks.semaphore("s", { permits } as never), { code: "CONFIG" }, String(permits));
  }
  assert.throws(() => locks.semaphore("s", undefined as never), { code: "CONFIG" });
  await assert.rejects(
    locks.semaphore("s", { permits: 1 }).request({ steal: true }, () => 0),
    { code: "NOT_SUPPORTED" },
  );
  await locks.close();
});
