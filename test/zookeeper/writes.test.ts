/** Which requests go out in one write, and when. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameReader, packet } from "../../src/zookeeper/frames.ts";
import { JuteReader } from "../../src/zookeeper/jute.ts";
import { type Wire, ZooKeeper } from "../../src/zookeeper/index.ts";

const LARGEST_PACKET = 1_048_576;

/** Opens the session; answers nothing else but what it is told to. Keeps the request numbers of each write. */
class RecordingWire implements Wire {
  readonly writes: number[][] = [];
  readonly #frames = new FrameReader(LARGEST_PACKET);
  #opened = false;
  #onData: (chunk: Buffer) => void = () => {};

  constructor(onOpen: () => void) {
    queueMicrotask(onOpen);
  }

  on(event: string, listener: (chunk: Buffer & Error) => void): void {
    if (event === "data") this.#onData = listener as (chunk: Buffer) => void;
  }

  write(bytes: Buffer): void {
    const bodies = [...this.#frames.frames(Buffer.from(bytes))];
    if (this.#opened) this.writes.push(bodies.map((body) => new JuteReader(body).int32()));
    else this.#onData(packet((writer) => writer.int32(0).int32(30_000).int64(1n).buffer(Buffer.alloc(16))));
    this.#opened = true;
  }

  answer(...xids: number[]): void {
    this.#onData(Buffer.concat(xids.map((xid) => packet((writer) => writer.int32(xid).int64(1n).int32(0)))));
  }

  cork(): void {}
  uncork(): void {}
  destroy(): void {}
}

async function open(): Promise<{ zk: ZooKeeper; wire: RecordingWire }> {
  let wire: RecordingWire | undefined;
  const openWire = (_host: unknown, _tls: unknown, onOpen: () => void): Wire => (wire = new RecordingWire(onOpen));
  const zk = await ZooKeeper.connect("nowhere:2181", { openWire, nudgeMs: 0 });
  assert.ok(wire !== undefined);
  return { zk: zk.unref(), wire };
}

test("the first request goes out before the call returns, those made meanwhile together", async () => {
  const { zk, wire } = await open();
  const first = zk.sync("/a");
  assert.deepEqual(wire.writes, [[1]]);
  const others = [zk.sync("/b"), zk.sync("/c")];
  assert.deepEqual(wire.writes, [[1]]);
  await new Promise(setImmediate);
  assert.deepEqual(wire.writes, [[1], [2, 3]]);
  wire.answer(1, 2, 3);
  await Promise.all([first, ...others]);
  const next = zk.sync("/d");
  assert.deepEqual(wire.writes.at(-1), [4], "nothing is under way any more");
  wire.answer(4);
  await next;
});

test("a request that announces another goes out with it", async () => {
  const { zk, wire } = await open();
  const both = [zk.sync("/a", { more: true }), zk.sync("/b")];
  assert.deepEqual(wire.writes, [[1, 2]]);
  wire.answer(1, 2);
  await Promise.all(both);
  const alone = zk.sync("/c", { more: true });
  await new Promise(setImmediate);
  assert.deepEqual(wire.writes.at(-1), [3], "nothing followed: sent all the same");
  wire.answer(3);
  await alone;
});

test("those that got their answers together ask together, where others are under way", async () => {
  const { zk, wire } = await open();
  const ask = async (path: string, again: boolean): Promise<void> => {
    await zk.sync(path);
    if (again) await zk.sync(path);
  };
  const all = [ask("/a", true), ask("/b", true), ask("/c", false)];
  await new Promise(setImmediate);
  wire.answer(1, 2);
  await new Promise(setImmediate);
  assert.deepEqual(wire.writes, [[1], [2, 3], [4, 5]]);
  wire.answer(3, 4, 5);
  await Promise.all(all);
});
