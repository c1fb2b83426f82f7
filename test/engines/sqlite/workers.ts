/** Real processes and threads that lock on command, and a temporary folder for their lock file. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { Worker as Thread } from "node:worker_threads";
import type { AcquireOptions } from "../../../src/index.ts";
import type { Command, LockState, Reply } from "./worker.ts";

const PROGRAM = join(import.meta.dirname, "worker.ts");

/** A folder that goes with the test. */
export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-sqlite-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface Granted {
  readonly token: string;
  /** On the monotonic clock that all processes share. */
  readonly atMs: number;
}

export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

type Send = (command: Command) => void;

/** The commands of one worker. */
export class Remote {
  readonly #send: Send;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  #next = 1;

  constructor(send: Send) {
    this.#send = send;
  }

  heard(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (reply.error === undefined) waiting?.resolve(reply.value as never);
    else waiting?.reject(Object.assign(new Error(reply.error.message), reply.error));
  }

  ended(how: string): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(how));
    this.#waiting.clear();
  }

  connect(path: string, guardedPid?: number): Promise<void> {
    return this.tell({ verb: "connect", path, ...(guardedPid === undefined ? {} : { guardedPid }) });
  }

  acquire(name: string, options: AcquireOptions = {}): Promise<Granted> {
    return this.tell({ verb: "acquire", name, options });
  }

  tryAcquire(name: string, options: AcquireOptions = {}): Promise<Granted | null> {
    return this.tell({ verb: "try", name, options });
  }

  release(name: string): Promise<number> {
    return this.tell({ verb: "release", name });
  }

  state(name: string): Promise<LockState | null> {
    return this.tell({ verb: "state", name });
  }

  tell<T>(command: Omit<Command, "id">): Promise<T> {
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ id, ...command });
    });
  }
}

export class WorkerProcess extends Remote {
  readonly process: ChildProcess;
  readonly exited: Promise<void>;

  constructor(process: ChildProcess) {
    super((command) => process.send(command));
    this.process = process;
    process.on("message", (reply: Reply) => this.heard(reply));
    this.exited = new Promise((resolve) => {
      process.once("exit", (code, signal) => {
        this.ended(`the worker ended (${signal ?? code})`);
        resolve();
      });
    });
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.exited;
  }
}

/** Starts a process; `through` is put before it (`unshare` and its like). It is killed with the test. */
export function startProcess(
  t: TestContext,
  through: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): WorkerProcess {
  const [program, ...before] = [...through, process.execPath, PROGRAM];
  const child = spawn(program, before, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { ...process.env, ...env },
  });
  const worker = new WorkerProcess(child);
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGCONT");
      await worker.kill();
    }
  });
  return worker;
}

export class WorkerThread extends Remote {
  readonly thread: Thread;

  constructor(thread: Thread) {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    super((command) => thread.postMessage(command));
    this.thread = thread;
    thread.on("message", (reply: Reply) => this.heard(reply));
    thread.on("error", (error) => this.ended(String(error)));
    thread.on("exit", () => this.ended("the thread ended"));
  }
}

export function startThread(t: TestContext): WorkerThread {
  const thread = new Thread(PROGRAM);
  t.after(() => thread.terminate());
  return new WorkerThread(thread);
}
