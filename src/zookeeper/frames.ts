/** Packets: a length in front, the body behind. Bytes in, bodies out; no I/O. */
import { ProtocolError, ZooKeeperError } from "./errors.ts";
import { type JuteReader, JuteWriter } from "./jute.ts";

const LENGTH_BYTES = 4;
const XID_OFFSET = LENGTH_BYTES;

/** A whole packet with its length in front; `write` puts the body. */
export function packet(write: (writer: JuteWriter) => void): Buffer {
  const writer = new JuteWriter().int32(0);
  write(writer);
  const bytes = writer.finish();
  bytes.writeInt32BE(bytes.length - LENGTH_BYTES, 0);
  return bytes;
}

/** A request packet. Its number is set by `setXid` when it is sent. */
export function requestPacket(opCode: number, xid: number, write: (writer: JuteWriter) => void): Buffer {
  return packet((writer) => write(writer.int32(xid).int32(opCode)));
}

export function setXid(request: Buffer, xid: number): void {
  request.writeInt32BE(xid, XID_OFFSET);
}

export function bodyBytes(request: Buffer): number {
  return request.length - LENGTH_BYTES;
}

export interface ReplyHeader {
  readonly xid: number;
  readonly zxid: bigint;
  readonly errorCode: number;
}

export function readReplyHeader(reader: JuteReader): ReplyHeader {
  return { xid: reader.int32(), zxid: reader.int64(), errorCode: reader.int32() };
}

/**
 * Cuts a stream of bytes into packet bodies. One per connection, so that bytes of a broken packet never meet the
 * next connection's. Keeps at most `maxBytes` + one chunk.
 */
export class FrameReader {
  readonly #maxBytes: number;
  /** Pieces of a packet that has not come whole. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The size of the packet under way with its length field, once that is known. */
  #wanted = LENGTH_BYTES;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of a packet that has begun and is not whole. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /** The bodies that `chunk` completes. They may share its memory. Throws on a length that is negative or too large. */
  *frames(chunk: Buffer): Generator<Buffer, void, undefined> {
    let rest = chunk;
    if (this.#bytes > 0) {
      if (this.#bytes + rest.length < this.#wanted) {
        this.#keep(rest);
        return;
      }
      rest = Buffer.concat([...this.#pieces, rest]);
      this.#pieces = [];
      this.#bytes = 0;
    }
    let offset = 0;
    while (rest.length - offset >= LENGTH_BYTES) {
      const end = offset + LENGTH_BYTES + this.#length(rest.readInt32BE(offset));
      if (end > rest.length) break;
      yield rest.subarray(offset + LENGTH_BYTES, end);
      offset = end;
    }
    this.#wanted = LENGTH_BYTES;
    if (offset < rest.length) this.#keep(rest.subarray(offset));
  }

  #keep(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    // A piece of 4 bytes or more is kept first, if at all: the length field is never in several pieces here.
    if (this.#wanted === LENGTH_BYTES && piece.length >= LENGTH_BYTES) {
      this.#wanted += this.#length(piece.readInt32BE(0));
    }
  }

  #length(length: number): number {
    if (length < 0) throw new ProtocolError(`a packet with a length of ${length}`);
    if (length > this.#maxBytes) {
      throw new ZooKeeperError(
        "PACKET_TOO_LARGE",
        `the server sent a packet of ${length} bytes, the limit (maxReplyBytes) is ${this.#maxBytes}`,
      );
    }
    return length;
  }
}
