/** Several changes as one: all are applied or none. Bytes out, values in; no I/O. */
import { codeOf, ProtocolError, ZooKeeperError, type ZooKeeperErrorCode } from "./errors.ts";
import type { JuteReader, JuteWriter } from "./jute.ts";
import { createOpCode, type CreateRequest, type Operation, writeCreate } from "./operations.ts";
import { OpCode } from "./protocol.ts";
import { readStat, type Stat } from "./records.ts";

/** A part as it goes to the server: path checked and under the chroot, defaults filled in. */
export type TransactionPart =
  | ({ readonly kind: "create" } & CreateRequest)
  | { readonly kind: "delete"; readonly path: string; readonly version: number }
  | { readonly kind: "setData"; readonly path: string; readonly data: Uint8Array; readonly version: number }
  | { readonly kind: "check"; readonly path: string; readonly version: number };

export type TransactionResult =
  /** Servers tell no `stat` here up to 3.8, whatever was asked. */
  | { readonly kind: "create"; readonly path: string; readonly stat: Stat | undefined }
  | { readonly kind: "delete" }
  | { readonly kind: "setData"; readonly stat: Stat }
  | { readonly kind: "check" };

/** Nothing of the transaction was applied. `index` is the part that failed, `code` is why. */
export class TransactionError extends ZooKeeperError {
  override readonly name: string = "TransactionError";
  readonly index: number;

  constructor(code: ZooKeeperErrorCode, index: number, message: string, serverCode: number, path: string | undefined) {
    super(code, message, { serverCode, path });
    this.index = index;
  }
}

/** `showPath`: how a path of the server looks to the caller. */
export function multi(
  parts: readonly TransactionPart[],
  showPath: (path: string) => string,
): Operation<TransactionResult[]> {
  return {
    opCode: OpCode.multi,
    verb: "multi",
    path: parts[0]?.path,
    changes: true,
    encode: (writer) => {
      for (const part of parts) writePart(writer, part);
      writeHeader(writer, OpCode.error, true);
    },
    decode: (reader) => readResults(reader, parts, showPath),
  };
}

function writeHeader(writer: JuteWriter, opCode: number, done: boolean): void {
  writer.int32(opCode).bool(done).int32(-1);
}

function writePart(writer: JuteWriter, part: TransactionPart): void {
  switch (part.kind) {
    case "create":
      writeHeader(writer, createOpCode(part.mode), false);
      writeCreate(writer, part);
      return;
    case "delete":
      writeHeader(writer, OpCode.delete, false);
      writer.string(part.path).int32(part.version);
      return;
    case "setData":
      writeHeader(writer, OpCode.setData, false);
      writer.string(part.path).buffer(part.data).int32(part.version);
      return;
    case "check":
      writeHeader(writer, OpCode.check, false);
      writer.string(part.path).int32(part.version);
      return;
  }
}

/** A failed part is a number: the reason where it failed, 0 before it (undone), RUNTIME_INCONSISTENCY after it (not tried). */
function readResults(
  reader: JuteReader,
  parts: readonly TransactionPart[],
  showPath: (path: string) => string,
): TransactionResult[] {
  const results: TransactionResult[] = [];
  const errors: number[] = [];
  for (;;) {
    const opCode = reader.int32();
    const done = reader.bool();
    const headerError = reader.int32();
    if (done) break;
    if (results.length + errors.length >= parts.length) throw new ProtocolError("more results than parts");
    if (opCode === OpCode.error) errors.push(reader.remaining >= 4 ? reader.int32() : headerError);
    else results.push(readResult(reader, opCode, showPath));
  }
  if (errors.length > 0) throw failure(errors, parts, showPath);
  if (results.length !== parts.length) throw new ProtocolError("fewer results than parts");
  return results;
}

function readResult(reader: JuteReader, opCode: number, showPath: (path: string) => string): TransactionResult {
  switch (opCode) {
    case OpCode.create:
      return { kind: "create", path: showPath(reader.string()), stat: undefined };
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTtl:
      return { kind: "create", path: showPath(reader.string()), stat: readStat(reader) };
    case OpCode.delete:
      return { kind: "delete" };
    case OpCode.setData:
      return { kind: "setData", stat: readStat(reader) };
    case OpCode.check:
      return { kind: "check" };
    default:
      throw new ProtocolError(`a result for op code ${opCode}, which was not asked`);
  }
}

const NOT_TRIED = -2;

function failure(
  errors: readonly number[],
  parts: readonly TransactionPart[],
  showPath: (path: string) => string,
): TransactionError {
  const index = errors.findIndex((code) => code !== 0 && code !== NOT_TRIED);
  const at = Math.max(index, 0);
  const serverCode = errors[at] ?? NOT_TRIED;
  const code = codeOf(serverCode);
  const part = parts[at];
  const path = part === undefined ? undefined : showPath(part.path);
  const message = `multi: part ${at} (${part?.kind} ${path}) failed with ${code} (${serverCode}); nothing was applied`;
  return new TransactionError(code, at, message, serverCode, path);
}
