/**
 * A first snapshot for an empty ZooKeeper data directory, in which the sequence counter of one node already stands where
 * a test wants it: the only way to reach its end without two thousand million creations.
 * Source of the format: `FileSnap` and `DataTree.serialize` of Apache ZooKeeper; seen to load in 3.8.0 and 3.9.6.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { JuteWriter } from "../src/zookeeper/jute.ts";

export interface CounterSnapshot {
  /** The node, made with all above it; everybody may do everything there. */
  readonly path: string;
  /** The number of its next sequential child. */
  readonly nextSequence: number;
}

/** Access control list 1 is "everybody, everything"; −1 is the server's built-in one. */
const OPEN = 1n;
const BUILT_IN = -1n;

/** Writes `version-2/snapshot.1`. Every server of an ensemble needs it, before its first start. */
export async function writeCounterSnapshot(dataDirectory: string, snapshot: CounterSnapshot): Promise<void> {
  const directory = join(dataDirectory, "version-2");
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "snapshot.1"), snapshotBytes(snapshot));
}

function snapshotBytes({ path, nextSequence }: CounterSnapshot): Buffer {
  const writer = new JuteWriter();
  writer.int32(0x5a4b534e).int32(2).int64(-1n); // "ZKSN", version, database
  writer.int32(0); // sessions
  writer.int32(1).int64(OPEN).int32(1).int32(31).string("world").string("anyone");
  for (const [name, cversion] of [
    ["", -1],
    ["/zookeeper", -2],
    ["/zookeeper/quota", 0],
    ["/zookeeper/config", 0],
  ] as const) {
    writeNode(writer, name, BUILT_IN, cversion);
  }
  const parts = path.split("/").slice(1);
  parts.forEach((_, index) => {
    const last = index === parts.length - 1;
    writeNode(writer, `/${parts.slice(0, index + 1).join("/")}`, OPEN, last ? nextSequence : 1);
  });
  writer.string("/");
  const checksum = adler32(writer.finish());
  return writer.int64(checksum).string("/").finish();
}

function writeNode(writer: JuteWriter, path: string, acl: bigint, cversion: number): void {
  writer.string(path).int32(0).int64(acl);
  for (const _ of ["czxid", "mzxid", "ctime", "mtime"]) writer.int64(0n);
  writer.int32(0).int32(cversion).int32(0); // version, cversion, aversion
  writer.int64(0n).int64(0n); // ephemeralOwner, pzxid
}

function adler32(bytes: Uint8Array): bigint {
  let low = 1;
  let high = 0;
  for (const byte of bytes) {
    low = (low + byte) % 65_521;
    high = (high + low) % 65_521;
  }
  return (BigInt(high) << 16n) | BigInt(low);
}
