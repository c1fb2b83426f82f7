/** Which servers and libraries a run has measured. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Debian's packages that the servers and the peers in other languages come from. */
const PACKAGES = ["redis-server", "mariadb-server", "libzookeeper-java", "libcurator-recipes-java", "python3-kazoo"];
/** The clients that the engines go through. */
const CLIENTS = ["ioredis", "mysql2"];

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** For people: what, and which. */
export function versions(): Record<string, string> {
  const own = manifest("../package.json").devDependencies ?? {};
  const peers = Object.entries(manifest("package.json").dependencies ?? {});
  return {
    servers: PACKAGES.map((name) => `${name} ${debianVersion(name)}`).join(", "),
    clients: CLIENTS.map((name) => `${name} ${own[name] ?? "unknown"}`).join(", "),
    peers: peers
      .map(([name, version]) => (version.startsWith("npm:") ? version.slice(4) : `${name}@${version}`))
      .join(", "),
  };
}

function manifest(file: string): Manifest {
  return JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8")) as Manifest;
}

function debianVersion(name: string): string {
  const { status, stdout } = spawnSync("dpkg-query", ["-W", "-f", "${Version}", name], { encoding: "utf8" });
  return status === 0 ? stdout : "(not from a Debian package)";
}
