/** Recognises file systems on which SQLite's locks do not work between machines. */
import { readFileSync, statfsSync } from "node:fs";
import { ConfigError } from "../../engine/errors.ts";

/** The magic numbers of Linux (linux/magic.h and the file systems' own headers). */
const NETWORK_TYPES: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x01021997, "9p"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x7461636f, "OCFS2"],
  [0x786f4256, "a VirtualBox shared folder"],
  [0xbacbacbc, "a VMware shared folder"],
]);
const FUSE_TYPE = 0x65735546;
/** File systems in user space that keep their data on this machine and pass locks on to its kernel. */
const LOCAL_FUSE = new Set(["fuse.fuse-overlayfs", "fuseblk"]);

/** What is known of the file system of a directory; a seam for tests, which cannot mount them all. */
export interface FileSystemFacts {
  /** `f_type` of statfs. */
  type(directory: string): number;
  /** The lines of /proc/self/mountinfo; empty where there is none. */
  mounts(): string;
}

const SYSTEM: FileSystemFacts = {
  type: (directory) => (process.platform === "linux" ? statfsSync(directory).type >>> 0 : 0),
  mounts: () => readFileSync("/proc/self/mountinfo", "utf8"),
};

/** Throws `ConfigError` when `directory` is on a network or shared file system, as far as that can be seen. */
export function refuseNetworkFileSystem(directory: string, facts: FileSystemFacts = SYSTEM): void {
  const type = facts.type(directory);
  let kind = NETWORK_TYPES.get(type);
  if (type === FUSE_TYPE) {
    const name = mountedType(directory, facts.mounts());
    if (!LOCAL_FUSE.has(name)) kind = name === "" ? "FUSE" : name;
  }
  if (kind === undefined) return;
  throw new ConfigError(
    `${directory} is on ${kind}, where file locks do not work reliably: put the lock file on a local disk, or use an ` +
      "engine with a server (redis:, mysql:, zookeeper:) for locks between machines",
  );
}

/** The type of the mount that holds `directory`: the longest mount point that is a prefix of it, the last one mounted. */
function mountedType(directory: string, mounts: string): string {
  let longest = -1;
  let found = "";
  for (const line of mounts.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const point = (before.split(" ")[4] ?? "").replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const holds = point === "/" || directory === point || directory.startsWith(`${point}/`);
    if (point === "" || !holds || point.length < longest) continue;
    longest = point.length;
    found = after.split(" ")[0] ?? "";
  }
  return found;
}
