/** The requests, each as bytes out and values in. Paths are the server's (chroot applied, checked). No I/O. */
import { type Acl, type AclEntry, readAcl, writeAcl } from "./acl.ts";
import { NO_NODE } from "./errors.ts";
import type { JuteReader, JuteWriter } from "./jute.ts";
import { CREATE_FLAGS, type CreateMode, OpCode } from "./protocol.ts";
import { readPaths, readStat, type Stat } from "./records.ts";

export interface Operation<T> {
  readonly opCode: number;
  /** For messages: "getData". */
  readonly verb: string;
  readonly path?: string | undefined;
  /** False: reads only, so that it may be sent again after a lost connection. */
  readonly changes: boolean;
  encode(writer: JuteWriter): void;
  decode(reader: JuteReader): T;
  /** Turns some error of the server into a value. */
  recover?(errorCode: number): { readonly value: T } | undefined;
  /** Called in the order of the replies, before anything else learns of this one: watches are registered here. */
  answered?(errorCode: number): void;
}

export interface CreatedNode {
  /** With the sequence number, where the mode has one. */
  readonly path: string;
  readonly stat: Stat;
}

export interface NodeData {
  /** Empty also where the node has none (null). */
  readonly data: Buffer;
  readonly stat: Stat;
}

export interface NodeChildren {
  /** Names, not paths, in no order. */
  readonly children: string[];
  readonly stat: Stat;
}

export interface NodeAcl {
  readonly acl: AclEntry[];
  readonly stat: Stat;
}

export interface AuthenticatedId {
  readonly scheme: string;
  readonly id: string;
}

export interface CreateRequest {
  readonly path: string;
  readonly data: Uint8Array;
  readonly acl: Acl;
  readonly mode: CreateMode;
  readonly ttlMs: number;
}

export const isTtl = (mode: CreateMode): boolean => mode === "ttl" || mode === "ttl-sequential";
export const isSequential = (mode: CreateMode): boolean => mode.endsWith("sequential");

export function createOpCode(mode: CreateMode): number {
  if (isTtl(mode)) return OpCode.createTtl;
  return mode === "container" ? OpCode.createContainer : OpCode.create2;
}

export function writeCreate(writer: JuteWriter, { path, data, acl, mode, ttlMs }: CreateRequest): void {
  writer.string(path).buffer(data);
  writeAcl(writer, acl);
  writer.int32(CREATE_FLAGS[mode]);
  if (isTtl(mode)) writer.int64(BigInt(ttlMs));
}

const readNothing = (): void => {};

/** `showPath`: how a path of the server looks to the caller. */
export function create(request: CreateRequest, showPath: (path: string) => string): Operation<CreatedNode> {
  return {
    opCode: createOpCode(request.mode),
    verb: "create",
    path: request.path,
    changes: true,
    encode: (writer) => writeCreate(writer, request),
    decode: (reader) => ({ path: showPath(reader.string()), stat: readStat(reader) }),
  };
}

export function remove(path: string, version: number): Operation<void> {
  return {
    opCode: OpCode.delete,
    verb: "delete",
    path,
    changes: true,
    encode: (writer) => writer.string(path).int32(version),
    decode: readNothing,
  };
}

export function exists(path: string, watch: boolean): Operation<Stat | null> {
  return {
    opCode: OpCode.exists,
    verb: "exists",
    path,
    changes: false,
    encode: (writer) => writer.string(path).bool(watch),
    decode: readStat,
    recover: (errorCode) => (errorCode === NO_NODE ? { value: null } : undefined),
  };
}

export function getData(path: string, watch: boolean): Operation<NodeData> {
  return {
    opCode: OpCode.getData,
    verb: "getData",
    path,
    changes: false,
    encode: (writer) => writer.string(path).bool(watch),
    decode: (reader) => ({ data: reader.buffer(), stat: readStat(reader) }),
  };
}

export function setData(path: string, data: Uint8Array, version: number): Operation<Stat> {
  return {
    opCode: OpCode.setData,
    verb: "setData",
    path,
    changes: true,
    encode: (writer) => writer.string(path).buffer(data).int32(version),
    decode: readStat,
  };
}

export function getChildren(path: string, watch: boolean): Operation<NodeChildren> {
  return {
    opCode: OpCode.getChildren2,
    verb: "getChildren",
    path,
    changes: false,
    encode: (writer) => writer.string(path).bool(watch),
    decode: (reader) => ({ children: readPaths(reader), stat: readStat(reader) }),
  };
}

export function sync(path: string): Operation<void> {
  return {
    opCode: OpCode.sync,
    verb: "sync",
    path,
    changes: false,
    encode: (writer) => writer.string(path),
    decode: readNothing,
  };
}

export function getAcl(path: string): Operation<NodeAcl> {
  return {
    opCode: OpCode.getAcl,
    verb: "getAcl",
    path,
    changes: false,
    encode: (writer) => writer.string(path),
    decode: (reader) => ({ acl: readAcl(reader), stat: readStat(reader) }),
  };
}

export function setAcl(path: string, acl: Acl, version: number): Operation<Stat> {
  return {
    opCode: OpCode.setAcl,
    verb: "setAcl",
    path,
    changes: true,
    encode: (writer) => {
      writer.string(path);
      writeAcl(writer, acl);
      writer.int32(version);
    },
    decode: readStat,
  };
}

export function addWatch(path: string, mode: number): Operation<void> {
  return {
    opCode: OpCode.addWatch,
    verb: "addWatch",
    path,
    changes: false,
    encode: (writer) => writer.string(path).int32(mode),
    decode: readNothing,
  };
}

export function removeWatches(path: string, kind: number): Operation<void> {
  return {
    opCode: OpCode.removeWatches,
    verb: "removeWatches",
    path,
    changes: false,
    encode: (writer) => writer.string(path).int32(kind),
    decode: readNothing,
  };
}

export function getEphemerals(prefix: string): Operation<string[]> {
  return {
    opCode: OpCode.getEphemerals,
    verb: "getEphemerals",
    path: prefix,
    changes: false,
    encode: (writer) => writer.string(prefix),
    decode: readPaths,
  };
}

export function whoAmI(): Operation<AuthenticatedId[]> {
  return {
    opCode: OpCode.whoAmI,
    verb: "whoAmI",
    changes: false,
    encode: readNothing,
    decode: (reader) => reader.vector(8, (entry) => ({ scheme: entry.string(), id: entry.string() })),
  };
}

export function closeSession(): Operation<void> {
  return { opCode: OpCode.closeSession, verb: "close", changes: true, encode: readNothing, decode: readNothing };
}
