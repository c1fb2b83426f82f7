/**
 * One private server process: started, watched, frozen, killed and restarted by tests, faults and benchmarks.
 * Nothing outlives the program that started it: processes and directories are removed on `stop()`, on exit, on a
 * signal, and (where `setpriv` exists) even when the program itself is killed.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { killAtExit } from "./exit-cleanup.ts";

export { ensureDebianPackage } from "./debian-packages.ts";
export { temporaryDirectory, type TemporaryDirectory } from "./exit-cleanup.ts";
export { freePort } from "./free-port.ts";

export interface ProcessOptions {
  /** Used in error messages. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of this program. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  /** Asked every 20 ms until it says true; a rejection counts as false. */
  readonly ready: () => Promise<boolean>;
  /** Default 30,000 ms. */
  readonly readyTimeoutMs?: number | undefined;
}

export interface ServerProcess {
  readonly name: string;
  readonly pid: number;
  readonly running: boolean;
  /** The last 64 KiB that the process wrote to standard output and standard error. */
  output(): string;
  /** SIGKILL, then waits until the process is gone. */
  kill(): Promise<void>;
  /** SIGSTOP. Returns once every thread has stopped: one in the middle of a write may answer before it does. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  /** Kills the process if it runs, calls `between` (to remove data, to rewrite settings), and starts it again. */
  restart(between?: () => Promise<void> | void): Promise<void>;
  /** SIGTERM, after 5 s SIGKILL; waits until the process is gone. */
  stop(): Promise<void>;
}

/** Starts the process and waits until `ready` says true. Rejects with the process's output when it does not come up. */
export async function startProcess(options: ProcessOptions): Promise<ServerProcess> {
  const server = new RunningProcess(options);
  await server.start();
  return server;
}

const OUTPUT_LIMIT = 64 * 1024;
const FREEZE_PATIENCE_MS = 2_000;
/** Makes the kernel kill the server when this program dies without a chance to clean up. */
const SETPRIV = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));

class RunningProcess implements ServerProcess {
  readonly name: string;
  readonly #options: ProcessOptions;
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #output = "";

  constructor(options: ProcessOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error(`${this.name} has not been started`);
    return pid;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  output(): string {
    return this.#output;
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#options;
    const [file, ...rest] =
      SETPRIV === undefined ? [command, ...args] : [SETPRIV, "--pdeathsig", "KILL", "--", command, ...args];
    if (file === undefined) throw new Error("no command");
    const child = spawn(file, rest, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    const forget = killAtExit(child);
    this.#exited = new Promise((resolve) => {
      child.once("exit", () => (forget(), resolve()));
      child.once("error", (error) => (this.#keep(String(error)), forget(), resolve()));
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => this.#keep(text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.#keep(text));
    await this.#waitUntilReady(child);
  }

  async kill(): Promise<void> {
    if (this.running) this.#child?.kill("SIGKILL");
    await this.#exited;
  }

  freeze(): void {
    if (!this.running) return;
    this.#child?.kill("SIGSTOP");
    const until = performance.now() + FREEZE_PATIENCE_MS;
    while (this.running && !hasStopped(this.pid) && performance.now() < until) pause(1);
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  async restart(between?: () => Promise<void> | void): Promise<void> {
    await this.kill();
    await between?.();
    await this.start();
  }

  async stop(): Promise<void> {
    if (!this.running) return;
    this.#child?.kill("SIGTERM");
    this.thaw(); // a stopped process would keep the signal for later
    const late = setTimeout(() => this.#child?.kill("SIGKILL"), 5_000);
    await this.#exited;
    clearTimeout(late);
  }

  async #waitUntilReady(child: ChildProcess): Promise<void> {
    const { ready, readyTimeoutMs = 30_000 } = this.#options;
    const until = performance.now() + readyTimeoutMs;
    while (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      if (await ready().catch(() => false)) return;
      if (performance.now() > until) {
        await this.kill();
        throw new Error(`${this.name} was not ready after ${readyTimeoutMs} ms. Its output:\n${this.#output}`);
      }
      await sleep(20);
    }
    await this.#exited;
    throw new Error(`${this.name} ended before it was ready. Its output:\n${this.#output}`);
  }

  #keep(text: string): void {
    this.#output = (this.#output + text).slice(-OUTPUT_LIMIT);
  }
}

/** Whether no thread of the process runs any more. True where there is no /proc to tell. */
function hasStopped(pid: number): boolean {
  const tasks = `/proc/${pid}/task`;
  try {
    return readdirSync(tasks).every((task) => /^[TtZX]/.test(stateOf(readFileSync(`${tasks}/${task}/stat`, "utf8"))));
  } catch {
    return !existsSync(tasks); // a thread that ended while we looked: look again
  }
}

/** The letter behind the name, which stands in parentheses and may have any characters. */
function stateOf(stat: string): string {
  return stat.slice(stat.lastIndexOf(")") + 2);
}

/** Blocks this thread. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
