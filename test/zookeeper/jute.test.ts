/** The serialization, on bytes: whatever is written is read back, and whatever is read stays inside its frame. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ProtocolError } from "../../src/zookeeper/errors.ts";
import { JuteReader, JuteWriter } from "../../src/zookeeper/jute.ts";

interface Field {
  readonly write: (writer: JuteWriter) => unknown;
  readonly read: (reader: JuteReader) => unknown;
  readonly value: unknown;
}

const field: fc.Arbitrary<Field> = fc.oneof(
  fc.boolean().map((value) => ({ value, write: (w: JuteWriter) => w.bool(value), read: (r: JuteReader) => r.bool() })),
  fc
    .integer()
    .map((value) => ({ value, write: (w: JuteWriter) => w.int32(value), read: (r: JuteReader) => r.int32() })),
  fc
    .bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    .map((value) => ({ value, write: (w: JuteWriter) => w.int64(value), read: (r: JuteReader) => r.int64() })),
  fc.option(fc.string({ unit: "grapheme", maxLength: 400 })).map((value) => ({
    value,
    write: (w: JuteWriter) => w.string(value),
    read: (r: JuteReader) => r.nullableString(),
  })),
  fc.option(fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes))).map((value) => ({
    value,
    write: (w: JuteWriter) => w.buffer(value),
    read: (r: JuteReader) => r.nullableBuffer(),
  })),
  fc.array(fc.string({ maxLength: 20 })).map((value) => ({
    value,
    write: (w: JuteWriter) => w.vector(value, (out, item) => out.string(item)),
    read: (r: JuteReader) => r.vector(4, (item) => item.string()),
  })),
);

test("what is written is read back, in any order and number of fields", () => {
  fc.assert(
    fc.property(fc.array(field), (fields) => {
      const writer = new JuteWriter();
      for (const each of fields) each.write(writer);
      const bytes = writer.finish();
      assert.equal(bytes.length, writer.length);
      const reader = new JuteReader(bytes);
      for (const each of fields) assert.deepEqual(each.read(reader), each.value);
      assert.equal(reader.remaining, 0);
    }),
  );
});

test("known bytes", () => {
  const bytes = new JuteWriter()
    .int32(-2)
    .int64(2n ** 62n)
    .bool(true)
    .string("é/")
    .string(null)
    .buffer(Buffer.from([7]))
    .vector(["a"], (out, item) => out.string(item))
    .finish();
  assert.equal(
    bytes.toString("hex"),
    ["fffffffe", "4000000000000000", "01", "00000003c3a92f", "ffffffff", "0000000107", "000000010000000161"].join(""),
  );
});

test("a truncated record is an error, at every length", () => {
  fc.assert(
    fc.property(fc.array(field, { minLength: 1 }), fc.nat(), (fields, cut) => {
      const writer = new JuteWriter();
      for (const each of fields) each.write(writer);
      const whole = writer.finish();
      const reader = new JuteReader(whole.subarray(0, cut % whole.length));
      assert.throws(() => fields.forEach((each) => each.read(reader)), ProtocolError);
    }),
  );
});

test("any bytes at all give a value or a ProtocolError, and never more memory than they are long", () => {
  const reads: readonly ((reader: JuteReader) => unknown)[] = [
    (reader) => reader.nullableString(),
    (reader) => reader.nullableBuffer(),
    (reader) => reader.vector(4, (item) => item.string()),
    (reader) => reader.vector(1, (item) => item.bool()),
    (reader) => reader.int64(),
  ];
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.constantFrom(...reads), (bytes, read) => {
      const reader = new JuteReader(Buffer.from(bytes));
      try {
        const value = read(reader);
        if (Array.isArray(value)) assert.ok(value.length <= bytes.length);
        if (Buffer.isBuffer(value)) assert.ok(value.length <= bytes.length);
      } catch (error) {
        assert.ok(error instanceof ProtocolError, String(error));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("lengths and counts that lie are refused before anything is allocated", () => {
  const reader = (...numbers: number[]): JuteReader => {
    const writer = new JuteWriter();
    for (const number of numbers) writer.int32(number);
    return new JuteReader(writer.finish());
  };
  assert.throws(() => reader(-2).nullableString(), /a length of -2/);
  assert.throws(() => reader(2 ** 31 - 1).nullableBuffer(), /2147483647 bytes wanted, 0 left/);
  assert.throws(() => reader(2 ** 31 - 1, 0, 0).vector(4, (item) => item.int32()), /a vector of 2147483647 items/);
  assert.throws(() => reader(3, 0, 0).vector(4, (item) => item.int32()), /a vector of 3 items/);
  assert.deepEqual(
    reader(2, 5, 6).vector(4, (item) => item.int32()),
    [5, 6],
  );
  assert.deepEqual(
    reader(-1).vector(4, (item) => item.int32()),
    [],
  );
});

test("a buffer that was read is a copy", () => {
  const bytes = new JuteWriter().buffer(Buffer.from("abc")).finish();
  const read = new JuteReader(bytes).buffer();
  bytes.fill(0);
  assert.equal(read.toString(), "abc");
});
