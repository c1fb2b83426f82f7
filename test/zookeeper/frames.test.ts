/** Packets cut out of a stream of bytes, however the network cuts it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ProtocolError, ZooKeeperError } from "../../src/zookeeper/errors.ts";
import { bodyBytes, FrameReader, packet, requestPacket, setXid } from "../../src/zookeeper/frames.ts";

const LIMIT = 4096;
const framed = (body: Uint8Array): Buffer => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
};

/** Cuts `bytes` at the given places. */
function* pieces(bytes: Buffer, cuts: readonly number[]): Generator<Buffer> {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((left, right) => left - right);
  let start = 0;
  for (const end of [...places, bytes.length]) {
    yield bytes.subarray(start, end);
    start = end;
  }
}

test("the same packets come out wherever the stream is cut", () => {
  const bodies = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 20 });
  fc.assert(
    fc.property(bodies, fc.array(fc.nat()), (sent, cuts) => {
      const reader = new FrameReader(LIMIT);
      const received: Buffer[] = [];
      for (const chunk of pieces(Buffer.concat(sent.map(framed)), cuts)) {
        for (const body of reader.frames(chunk)) received.push(Buffer.from(body));
      }
      assert.deepEqual(
        received,
        sent.map((body) => Buffer.from(body)),
      );
      assert.equal(reader.pendingBytes, 0);
    }),
    { numRuns: 500 },
  );
});

test("one byte at a time", () => {
  const reader = new FrameReader(LIMIT);
  const received: string[] = [];
  for (const byte of Buffer.concat(["", "a", "bc"].map((text) => framed(Buffer.from(text))))) {
    for (const body of reader.frames(Buffer.of(byte))) received.push(body.toString());
  }
  assert.deepEqual(received, ["", "a", "bc"]);
});

test("a length that is negative or over the limit is an error as soon as it is read, even in pieces", () => {
  const negative = Buffer.from("ffffffff", "hex");
  assert.throws(() => [...new FrameReader(LIMIT).frames(negative)], ProtocolError);
  const large = Buffer.from("00001001", "hex");
  const tooLarge = (error: unknown): boolean => error instanceof ZooKeeperError && error.code === "PACKET_TOO_LARGE";
  assert.throws(() => [...new FrameReader(LIMIT).frames(large)], tooLarge);
  const reader = new FrameReader(LIMIT);
  assert.deepEqual([...reader.frames(large.subarray(0, 3))], []);
  assert.throws(() => [...reader.frames(large.subarray(3))], tooLarge);
  assert.deepEqual([...new FrameReader(LIMIT).frames(Buffer.from("00001000", "hex"))], []);
});

test("a packet that is not whole keeps what has come and no more", () => {
  const reader = new FrameReader(LIMIT);
  const body = Buffer.alloc(LIMIT, 1);
  const bytes = framed(body);
  for (let offset = 0; offset < bytes.length - 1; offset += 100) {
    const end = Math.min(offset + 100, bytes.length - 1);
    assert.deepEqual([...reader.frames(bytes.subarray(offset, end))], []);
    assert.equal(reader.pendingBytes, end);
  }
  assert.deepEqual([...reader.frames(bytes.subarray(-1))], [body]);
  assert.equal(reader.pendingBytes, 0);
});

test("a request packet has its length, number and op code in front", () => {
  const request = requestPacket(15, 0, (writer) => writer.string("/a"));
  setXid(request, 0x01020304);
  assert.equal(request.toString("hex"), ["0000000e", "01020304", "0000000f", "000000022f61"].join(""));
  assert.equal(bodyBytes(request), 14);
  assert.equal(packet((writer) => writer.bool(true)).toString("hex"), "0000000101");
});
