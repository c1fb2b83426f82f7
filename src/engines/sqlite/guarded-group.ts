/** A process group whose life keeps held places taken: the command of `holdfast run`, which may outlive its supervisor. */
import { readdirSync, readFileSync } from "node:fs";
import { ConfigError } from "../../engine/errors.ts";
import { pidSpace } from "./machine.ts";

export interface GuardedGroup {
  /** The process group's id, which is its leader's pid; or the pid of a process that leads no group. */
  readonly pid: number;
  /** When the leader started, in clock ticks since boot; empty where that cannot be read. */
  readonly startedAt: string;
  /** The PID namespace in which `pid` is meant; empty: nobody can look it up. */
  readonly pidSpace: string;
}

interface ProcessState {
  readonly group: number;
  readonly startedAt: string;
  /** False for zombies: they run nothing any more. */
  readonly runs: boolean;
}

/** Describes the group led by `pid`, a child of this process. Throws `ConfigError` when there is no such process. */
export function describeGroup(pid: number): GuardedGroup {
  if (!Number.isSafeInteger(pid) || pid < 2) throw new ConfigError("guardedPid must be the id of a process group");
  if (!exists(pid)) throw new ConfigError(`guardedPid: there is no process ${pid}`);
  return { pid, startedAt: readProcess(pid)?.startedAt ?? "", pidSpace: pidSpace() };
}

/** Whether a process of the group still runs. Only for groups of this process's own PID namespace, of this boot. */
export function groupRuns(group: GuardedGroup): boolean {
  if (process.platform === "win32") return exists(group.pid);
  if (!exists(-group.pid) && !exists(group.pid)) return false;
  if (process.platform !== "linux") return true;
  const leader = readProcess(group.pid);
  // The number was given away again, and it is only given away when the old group has ended.
  if (leader !== undefined && group.startedAt !== "" && leader.startedAt !== group.startedAt) return false;
  // A command in the terminal's process group leads none of its own: then it alone counts.
  if (leader?.runs === true) return true;
  return readdirSync("/proc").some((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    const state = readProcess(Number(entry));
    return state !== undefined && state.group === group.pid && state.runs;
  });
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** See proc(5), /proc/PID/stat: the name in brackets may hold anything, the fields after it are numbers. */
function readProcess(pid: number): ProcessState | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  const [state, , group, ...rest] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { group: Number(group), startedAt: rest[16] ?? "", runs: state !== "Z" && state !== "X" };
}
