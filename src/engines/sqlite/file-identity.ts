/** Which file a path leads to. */
import { statSync } from "node:fs";

/** Device and inode of the file at `path`; undefined when there is none. A copy of a file has another identity. */
export function fileIdentity(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}

/** The same of a lock file in use together with the two files that SQLite keeps beside it as long as somebody has it open. */
export function lockFileIdentity(path: string): string {
  return ["", "-wal", "-shm"].map((suffix) => fileIdentity(path + suffix) ?? "none").join(" ");
}
