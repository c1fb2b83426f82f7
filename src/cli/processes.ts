/** Other processes, as the system lists them. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** When it was started, in whatever form: with it, an id that is used again is not taken for the old process. */
  readonly start: string;
  /** R, S, D: runs or sleeps; T: stopped; Z: dead and not yet collected by its parent. */
  readonly state: string;
}

/** All processes. Cost: one small file each on Linux, one run of `ps` elsewhere. */
export function allProcesses(): ProcessEntry[] {
  const folders = entriesOfProc();
  if (folders === undefined) return fromPs();
  return folders.flatMap((folder) => fromProc(Number(folder)) ?? []);
}

/** One process, or undefined when there is none with this id. */
function processEntry(pid: number): ProcessEntry | undefined {
  if (entriesOfProc() !== undefined) return fromProc(pid);
  return fromPs().find((entry) => entry.pid === pid);
}

/**
 * Whether Ctrl-Z has stopped it. A shell that starts a program by vfork(2) may be caught in the middle: then the child is
 * stopped, and the shell sleeps in the kernel (D) until the child goes on.
 */
export function isStopped(pid: number): boolean {
  const state = processEntry(pid)?.state;
  if (state !== "D" && state !== "U") return state === "T";
  return allProcesses().some((entry) => entry.parent === pid && entry.state === "T");
}

function entriesOfProc(): string[] | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return undefined;
  }
}

function fromProc(pid: number): ProcessEntry | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // After the command in parentheses, which may hold anything: state, parent, group, … and the start as the 20th field.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent, group] = fields;
    return { pid, state, parent: Number(parent), group: Number(group), start: fields[19] ?? "" };
  } catch {
    return undefined; // it ended meanwhile
  }
}

function fromPs(): ProcessEntry[] {
  const columns = ["pid=", "ppid=", "pgid=", "stat=", "lstart="].flatMap((column) => ["-o", column]);
  const lines = execFileSync("ps", ["-A", ...columns], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid, parent, group, state, start] = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S)\S*\s+(.*)$/.exec(line) ?? [];
    if (pid === undefined || state === undefined || start === undefined) return [];
    return { pid: Number(pid), parent: Number(parent), group: Number(group), state, start };
  });
}
