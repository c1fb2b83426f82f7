/** Installs what a server needs where that is possible, and says in one line how to get it where it is not. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface DebianPackage {
  /** What is needed, for the message: "ZooKeeper". */
  readonly what: string;
  readonly packages: readonly string[];
  /** Says whether it is there already (from whatever source). */
  readonly present: () => boolean;
}

/**
 * Returns at once when `present()`. Otherwise installs the packages if this is Debian and we are root, without starting
 * any system service. Rejects with one clear line where it cannot.
 */
export async function ensureDebianPackage({ what, packages, present }: DebianPackage): Promise<void> {
  if (present()) return;
  const command = `apt-get install -y --no-install-recommends ${packages.join(" ")}`;
  if (!existsSync("/etc/debian_version") || process.getuid?.() !== 0) {
    throw new Error(`${what} is not installed. On Debian or Ubuntu: sudo ${command}`);
  }
  try {
    // One at a time: several test processes may want the same package.
    await run("flock", [join(tmpdir(), "holdfast-apt.lock"), "sh", "-c", install(command)], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      maxBuffer: 64 * 1024 * 1024,
    });
  } catch (error) {
    throw new Error(`${what} could not be installed. Tried: ${command}`, { cause: error });
  }
  if (!present()) throw new Error(`${what} was installed but is not where it was expected. Tried: ${command}`);
}

/** policy-rc.d that exits with 101 keeps the packages from starting their services. */
function install(command: string): string {
  const policy = "/usr/sbin/policy-rc.d";
  return `
    if [ ! -e ${policy} ]; then
      printf '#!/bin/sh\\nexit 101\\n' > ${policy}; chmod 755 ${policy}; trap 'rm -f ${policy}' EXIT
    fi
    ${command} || { apt-get update && ${command}; }
  `;
}
