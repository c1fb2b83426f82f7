/** A process (or thread) that locks on command: the other end of `workers.ts`. */
import { spawn } from "node:child_process";
import { parentPort } from "node:worker_threads";
import { connect, type AcquireOptions, type HeldLock, type LockManager } from "../../../src/index.ts";
import { sqlite } from "../../../src/engines/sqlite/index.ts";

export interface Command {
  readonly id: number;
  readonly verb:
    "connect" | "acquire" | "try" | "release" | "state" | "close" | "block" | "exit" | "hammer" | "query" | "group";
  readonly name?: string;
  readonly path?: string;
  readonly guardedPid?: number;
  readonly ms?: number;
  readonly count?: number;
  readonly options?: AcquireOptions;
}

export interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly code: unknown; readonly message: string };
}

export interface LockState {
  readonly isHeld: boolean;
  readonly aborted: boolean;
  readonly reason: unknown;
}

const held = new Map<string, HeldLock>();
let locks: LockManager | undefined;

function manager(): LockManager {
  if (locks === undefined) throw new Error("not connected");
  return locks;
}

function keep(lock: HeldLock | null): { token: string; atMs: number } | null {
  if (lock === null) return null;
  held.set(lock.name, lock);
  return { token: String(lock.token), atMs: hrtimeMs() };
}

function hrtimeMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function lockState(name: string): LockState | null {
  const lock = held.get(name);
  if (lock === undefined) return null;
  const reason: unknown = lock.signal.reason;
  const why = reason instanceof Error && "reason" in reason ? reason.reason : null;
  return { isHeld: lock.isHeld(), aborted: lock.signal.aborted, reason: why };
}

/** Locks and unlocks as fast as it can; says when it was inside, on the clock that all processes share. */
async function hammer(name: string, count: number): Promise<[from: number, to: number, token: string][]> {
  const spans: [number, number, string][] = [];
  for (let turn = 0; turn < count; turn++) {
    const lock = await manager().acquire(name);
    const from = hrtimeMs();
    if (turn % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
    spans.push([from, hrtimeMs(), String(lock.token)]);
    await lock.release();
  }
  return spans;
}

async function obey(command: Command): Promise<unknown> {
  const { name = "x", options, count = 1 } = command;
  switch (command.verb) {
    case "connect": {
      const { path = "", guardedPid } = command;
      locks = await connect(sqlite({ path, guardedPid }));
      return null;
    }
    case "acquire":
      return keep(await manager().acquire(name, options));
    case "try":
      return keep(await manager().tryAcquire(name, options));
    case "release":
      await held.get(name)?.release();
      return hrtimeMs();
    case "state":
      return lockState(name);
    case "query":
      return JSON.parse(
        JSON.stringify(await manager().query(), (_, value: unknown) =>
          typeof value === "bigint" ? String(value) : value,
        ),
      );
    case "hammer":
      return await hammer(name, count);
    case "block": {
      const until = hrtimeMs() + (command.ms ?? 0);
      while (hrtimeMs() < until);
      return lockState(name);
    }
    case "close":
      await manager().close();
      return null;
    case "group": {
      const child = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
      child.unref();
      return child.pid;
    }
    case "exit":
      process.exit(0);
      break;
    default:
      command.verb satisfies never;
  }
  return null;
}

async function answer(command: Command): Promise<void> {
  let reply: Reply;
  try {
    reply = { id: command.id, value: await obey(command) };
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    const code = error instanceof Error && "code" in error ? error.code : null;
    reply = { id: command.id, error: { name, code, message } };
  }
  if (parentPort === null) process.send?.(reply);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  else parentPort.postMessage(reply);
}

if (parentPort === null) process.on("message", (command: Command) => void answer(command));
else parentPort.on("message", (command: Command) => void answer(command));
