/** Runs the command line as real processes, and looks at the processes that it starts. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { killAtExit, temporaryDirectory, type TemporaryDirectory } from "../../servers/exit-cleanup.ts";

export const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunSettings {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** What COMMAND reads; then the end of the file. Default: nothing. */
  readonly input?: string;
  readonly stdio?: StdioOptions;
  readonly cwd?: string;
}

const running = new Set<ChildProcess>();

/** What a failed test has left. */
after(() => {
  for (const child of running) {
    child.kill("SIGKILL");
    child.stdin?.destroy();
  }
});

/** A process whose output is kept, and that does not outlive the test. */
export class Running {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  stdout = "";
  stderr = "";

  constructor(child: ChildProcess) {
    this.child = child;
    const forget = killAtExit(child);
    running.add(child);
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    this.finished = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => {
        forget();
        running.delete(child);
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  get pid(): number {
    assert(this.child.pid !== undefined, "the process was not started");
    return this.child.pid;
  }

  /** Resolves to the match when standard output (or error) shows it. */
  async shows(pattern: RegExp, where: "stdout" | "stderr" = "stdout", withinMs = 20_000): Promise<RegExpExecArray> {
    let match: RegExpExecArray | null = null;
    await until(
      () => (match = pattern.exec(this[where])) !== null,
      () => `${String(pattern)} on ${where}: ${JSON.stringify({ stdout: this.stdout, stderr: this.stderr })}`,
      withinMs,
    );
    return match ?? assert.fail();
  }

  /** The number that COMMAND has printed first: its process id. */
  async commandPid(): Promise<number> {
    return Number((await this.shows(/^(\d+)\r?$/m))[1]);
  }
}

/** `holdfast ...words`, with locks in memory unless told otherwise. */
export function holdfast(words: readonly string[], settings: RunSettings = {}): Running {
  return start(process.execPath, [MAIN, ...words], settings);
}

export function start(command: string, words: readonly string[], settings: RunSettings = {}): Running {
  const { env = {}, input, stdio = ["pipe", "pipe", "pipe"], cwd } = settings;
  const child = spawn(command, words, { stdio, cwd, env: cleanEnvironment(env) });
  child.stdin?.on("error", () => {}); // nobody reads it
  child.stdin?.end(input ?? "");
  return new Running(child);
}

/** Ours, without what a developer's own settings would change, and with `added`. */
export function cleanEnvironment(added: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  // NODE_OPTIONS: Node 22 runs TypeScript only when told to.
  const names = ["PATH", "HOME", "USER", "TMPDIR", "LANG", "NODE_OPTIONS"];
  const kept = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  const merged = { ...kept, HOLDFAST_URL: "memory:", ...added };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined));
}

export async function until(condition: () => boolean, what: string | (() => string), withinMs = 20_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!condition()) {
    if (performance.now() > end) {
      throw new Error(`not within ${withinMs} ms: ${typeof what === "string" ? what : what()}`);
    }
    await pause(10);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** R, S, D, T, Z of proc(5), or undefined when there is no such process. */
export function stateOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text[text.lastIndexOf(")") + 2];
  } catch {
    return undefined;
  }
}

/** Whether the process can still do something: it is there and is not a zombie. */
export function lives(pid: number): boolean {
  const state = stateOf(pid);
  return state !== undefined && state !== "Z" && state !== "X";
}

export async function folder(name: string): Promise<TemporaryDirectory> {
  return await temporaryDirectory(name);
}

/** How many processes of the group still run. */
export function groupSize(group: number): number {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name) || !lives(Number(name))) return false;
    try {
      const text = readFileSync(`/proc/${name}/stat`, "utf8");
      return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[2]) === group;
    } catch {
      return false;
    }
  }).length;
}

/** The processes whose parent is `pid`. */
export function childrenOf(pid: number): readonly { readonly pid: number }[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || !lives(Number(name))) return [];
    try {
      const text = readFileSync(`/proc/${name}/stat`, "utf8");
      return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]) === pid ? [{ pid: Number(name) }] : [];
    } catch {
      return [];
    }
  });
}
