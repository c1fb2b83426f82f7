/** Whom a signal for COMMAND reaches: a process group of its own, or (in the foreground) COMMAND and its descendants. */
import { allProcesses, type ProcessEntry } from "./processes.ts";

export interface Members {
  /** Signals all of them. Never throws: they may be gone. */
  signal(signal: NodeJS.Signals): void;
  /** Whether none is left. */
  areGone(): boolean;
}

/** The process group that `pid` leads. */
export class ProcessGroup implements Members {
  readonly #pid: number;

  constructor(pid: number) {
    this.#pid = pid;
  }

  signal(signal: NodeJS.Signals): void {
    kill(-this.#pid, signal);
  }

  /** Also when only zombies are left: where the first process of a container collects none, they stay listed for ever. */
  areGone(): boolean {
    return !kill(-this.#pid, 0) || !allProcesses().some(({ group, state }) => group === this.#pid && state !== "Z");
  }
}

/**
 * `pid` and its descendants. The shell's job has one group for all of a pipeline, ourselves included, so they are
 * signalled one by one. Those seen once are remembered: a child whose parent ended is nobody's descendant any more.
 */
export class ProcessTree implements Members {
  readonly #pid: number;
  /** Process id to start. */
  readonly #known = new Map<number, string>();

  constructor(pid: number) {
    this.#pid = pid;
  }

  signal(signal: NodeJS.Signals): void {
    for (const { pid } of this.#living()) kill(pid, signal);
  }

  areGone(): boolean {
    return this.#living().length === 0;
  }

  #living(): ProcessEntry[] {
    const all = allProcesses();
    this.#explore(all);
    return all.filter((entry) => this.#known.get(entry.pid) === entry.start && entry.state !== "Z");
  }

  #explore(all: readonly ProcessEntry[]): void {
    if (this.#known.size === 0) {
      const root = all.find((entry) => entry.pid === this.#pid);
      if (root !== undefined) this.#known.set(root.pid, root.start);
    }
    const living = new Set(all.flatMap(({ pid, start }) => (this.#known.get(pid) === start ? pid : [])));
    let before = -1;
    while (before !== living.size) {
      before = living.size;
      for (const { pid, parent, start } of all) {
        if (!living.has(parent) || living.has(pid)) continue;
        living.add(pid);
        this.#known.set(pid, start);
      }
    }
  }
}

function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    // Somebody else's process in the group is there as well, although we may not signal it.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
