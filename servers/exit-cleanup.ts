/** What must be gone when this program ends, however it ends. */
import type { ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const children = new Set<ChildProcess>();
const directories = new Set<string>();
let installed = false;

/** Kills `child` when this program exits. Returns a function that takes that back. */
export function killAtExit(child: ChildProcess): () => void {
  install();
  children.add(child);
  return () => children.delete(child);
}

export interface TemporaryDirectory {
  /** Absolute. */
  readonly path: string;
  remove(): Promise<void>;
}

/** A new private directory (mode 0700), removed by `remove()` and in any case when this program exits. */
export async function temporaryDirectory(name: string, parent: string = tmpdir()): Promise<TemporaryDirectory> {
  install();
  const path = await mkdtemp(join(parent, `holdfast-${name}-`));
  directories.add(path);
  return {
    path,
    async remove() {
      await rm(path, { recursive: true, force: true, maxRetries: 5 });
      directories.delete(path);
    },
  };
}

function install(): void {
  if (installed) return;
  installed = true;
  process.on("exit", cleanUp);
  // Without a listener a signal ends the program and skips "exit".
  for (const [signal, status] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.once(signal, () => process.exit(status));
  }
}

function cleanUp(): void {
  for (const child of children) child.kill("SIGKILL");
  for (const path of directories) rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
}
