/** A wall clock of its own for one server process (see clockshim.c). */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureDebianPackage } from "./server-process.ts";

const run = promisify(execFile);
const SOURCE = fileURLToPath(new URL("clockshim.c", import.meta.url));

export interface ClockShim {
  /** To be added to the environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** Moves the wall clock of the process to this far from the true one; negative is the past. Takes effect at once. */
  setOffset(offsetMs: number): Promise<void>;
}

/** Compiles the shim into `directory` (about 0.1 s). Linux with glibc and gcc only; installs gcc where it may. */
export async function createClockShim(directory: string): Promise<ClockShim> {
  await ensureDebianPackage({
    what: "A C compiler (for the clock shim)",
    packages: ["gcc", "libc6-dev"],
    present: () => existsSync("/usr/bin/gcc"),
  });
  const library = join(directory, "clockshim.so");
  const file = join(directory, "clock-offset");
  await run("gcc", ["-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-lpthread"]);
  await write(file, 0);
  return {
    env: { LD_PRELOAD: library, CLOCKSHIM_FILE: file },
    setOffset: (offsetMs) => write(file, offsetMs),
  };
}

/** Eight bytes in one write into the file as it is: the process has it mapped. */
async function write(file: string, offsetMs: number): Promise<void> {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(Math.round(offsetMs * 1e6)));
  await writeFile(file, bytes, { flag: existsSync(file) ? "r+" : "w" });
}
