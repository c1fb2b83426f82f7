/** The records of the wire protocol that are not requests. Source: `zookeeper.jute` of Apache ZooKeeper. */
import { JuteReader, type JuteWriter } from "./jute.ts";
import { packet } from "./frames.ts";
import { PASSWORD_BYTES } from "./protocol.ts";

/** What the server keeps about a node beside its data. */
export interface Stat {
  /** The transaction that created the node: grows with every change anywhere on the server. */
  readonly czxid: bigint;
  /** The transaction that last changed its data. */
  readonly mzxid: bigint;
  /** Wall clock of the server, ms since 1970, at creation. */
  readonly ctimeMs: number;
  /** The same at the last change of the data. */
  readonly mtimeMs: number;
  /** How often the data has been changed. */
  readonly version: number;
  /** How often children have come and gone. Not the counter behind sequential names. */
  readonly cversion: number;
  /** How often the access control list has been changed. */
  readonly aversion: number;
  /** The session that an ephemeral node lives and ends with; 0 for all other kinds, container and TTL nodes too. */
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  /** The transaction that last added or removed a child. */
  readonly pzxid: bigint;
}

export function readStat(reader: JuteReader): Stat {
  return {
    czxid: reader.int64(),
    mzxid: reader.int64(),
    ctimeMs: Number(reader.int64()),
    mtimeMs: Number(reader.int64()),
    version: reader.int32(),
    cversion: reader.int32(),
    aversion: reader.int32(),
    ephemeralOwner: reader.int64(),
    dataLength: reader.int32(),
    numChildren: reader.int32(),
    pzxid: reader.int64(),
  };
}

export interface ConnectRequest {
  readonly lastZxid: bigint;
  readonly timeoutMs: number;
  /** 0 asks for a new session. */
  readonly sessionId: bigint;
  readonly password: Uint8Array;
}

export function connectPacket({ lastZxid, timeoutMs, sessionId, password }: ConnectRequest): Buffer {
  return packet((writer) =>
    writer.int32(0).int64(lastZxid).int32(timeoutMs).int64(sessionId).buffer(password).bool(false),
  );
}

export interface ConnectResponse {
  /** 0 or less: the session is unknown, expired, or the password is wrong. */
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Buffer;
}

export function readConnectResponse(body: Buffer): ConnectResponse {
  const reader = new JuteReader(body);
  reader.int32(); // the protocol's version, 0 since ever; a read-only flag may follow at the end
  return { timeoutMs: reader.int32(), sessionId: reader.int64(), password: reader.buffer() };
}

export const NO_PASSWORD: Uint8Array = new Uint8Array(PASSWORD_BYTES);

/** A notification as it is on the wire. */
export interface ServerEvent {
  readonly type: number;
  readonly path: string;
}

export function readServerEvent(reader: JuteReader): ServerEvent {
  const type = reader.int32();
  reader.int32(); // the state of the connection: always "connected"
  return { type, path: reader.string() };
}

export function writePaths(writer: JuteWriter, paths: readonly string[]): void {
  writer.vector(paths, (out, path) => out.string(path));
}

export function readPaths(reader: JuteReader): string[] {
  return reader.vector(4, (out) => out.string());
}
