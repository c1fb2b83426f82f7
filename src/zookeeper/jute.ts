/**
 * ZooKeeper's serialization, called jute: big-endian integers, strings and buffers with a length in front (−1 for null),
 * vectors with a count in front. Bytes in, values out: no I/O, and nothing that a server sends can read past its frame
 * or make this process allocate more than the frame's own size.
 */
import { ProtocolError } from "./errors.ts";

const FIRST_CAPACITY = 256;

export class JuteWriter {
  #bytes = Buffer.allocUnsafe(FIRST_CAPACITY);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  bool(value: boolean): this {
    this.#reserve(1);
    this.#length = this.#bytes.writeUInt8(value ? 1 : 0, this.#length);
    return this;
  }

  int32(value: number): this {
    this.#reserve(4);
    this.#length = this.#bytes.writeInt32BE(value, this.#length);
    return this;
  }

  int64(value: bigint): this {
    this.#reserve(8);
    this.#length = this.#bytes.writeBigInt64BE(value, this.#length);
    return this;
  }

  /** UTF-8, as the server reads it. */
  string(value: string | null): this {
    if (value === null) return this.int32(-1);
    const size = Buffer.byteLength(value);
    this.int32(size).#reserve(size);
    this.#length += this.#bytes.write(value, this.#length);
    return this;
  }

  buffer(value: Uint8Array | null): this {
    if (value === null) return this.int32(-1);
    this.int32(value.length).#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  vector<T>(items: readonly T[], write: (writer: this, item: T) => void): this {
    this.int32(items.length);
    for (const item of items) write(this, item);
    return this;
  }

  /** What has been written so far. The writer must not be used afterwards. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(size: number): void {
    const needed = this.#length + size;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

export class JuteReader {
  readonly #bytes: Buffer;
  #offset: number;

  constructor(bytes: Buffer, offset = 0) {
    this.#bytes = bytes;
    this.#offset = offset;
  }

  /** How many bytes are left. */
  get remaining(): number {
    return this.#bytes.length - this.#offset;
  }

  bool(): boolean {
    return this.#bytes[this.#take(1)] !== 0;
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.#take(4));
  }

  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.#take(8));
  }

  nullableString(): string | null {
    const size = this.#size();
    if (size < 0) return null;
    const start = this.#take(size);
    return this.#bytes.toString("utf8", start, start + size);
  }

  string(): string {
    return this.nullableString() ?? "";
  }

  /** A copy: keeping it does not keep the whole packet in memory. */
  nullableBuffer(): Buffer | null {
    const size = this.#size();
    if (size < 0) return null;
    const start = this.#take(size);
    return Buffer.from(this.#bytes.subarray(start, start + size));
  }

  buffer(): Buffer {
    return this.nullableBuffer() ?? Buffer.alloc(0);
  }

  /** `smallest`: the fewest bytes that one item takes; a count that cannot fit in the frame is refused before the loop. */
  vector<T>(smallest: number, read: (reader: this) => T): T[] {
    const count = this.#size();
    if (count > 0 && count * smallest > this.remaining) {
      throw new ProtocolError(`a vector of ${count} items cannot be in the ${this.remaining} bytes left`);
    }
    const items: T[] = [];
    for (let n = 0; n < count; n++) items.push(read(this));
    return items;
  }

  /** −1 is null; anything below is nonsense. */
  #size(): number {
    const size = this.int32();
    if (size < -1) throw new ProtocolError(`a length of ${size}`);
    return size;
  }

  #take(size: number): number {
    const start = this.#offset;
    if (size > this.#bytes.length - start) {
      throw new ProtocolError(`${size} bytes wanted, ${this.#bytes.length - start} left`);
    }
    this.#offset = start + size;
    return start;
  }
}
