/** Lua scripts, named on the wire by their SHA-1. */
import { createHash } from "node:crypto";

export interface Script {
  readonly source: string;
  /** SHA-1 of the source in hexadecimal, as EVALSHA wants it. */
  readonly sha: string;
}

export function createScript(source: string): Script {
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}
