/** The program of a client process: connects, works, and does what the judge tells it over IPC. */
import { appendFileSync } from "node:fs";
import { Census } from "./census.ts";
import { systemClock } from "../../../src/engine/clock.ts";
import { connect, EngineUnavailableError, type LockManager } from "../../../src/index.ts";
import { historyFile, HistoryRecorder } from "../../../src/testing/history/index.ts";
import { engineFor } from "./deployment.ts";
import type { Birth, FromClient, ToClient } from "./messages.ts";
import { Worker, type Register } from "./worker.ts";

const MOST_CONNECTS = 400;

const birth = JSON.parse(process.argv[2] ?? "{}") as Birth;
const recorder = new HistoryRecorder(birth.name, historyFile(birth.historyPath));
const trouble = (what: string): void => appendFileSync(birth.troublePath, `${birth.name}: ${what}\n`);
const send = (message: FromClient): void => void process.send?.(message);

process.on("unhandledRejection", (reason) => trouble(`unhandled rejection: ${stackOf(reason)}`));
process.on("uncaughtException", (error) => trouble(`uncaught exception: ${stackOf(error)}`));
process.on("warning", (warning) => {
  if (warning.name === "MaxListenersExceededWarning") trouble(stackOf(warning));
});

const writes = new Map<number, (taken: boolean) => void>();
let lastWrite = 0;
const register: Register = (resource, token, write) =>
  new Promise((resolve) => {
    writes.set(++lastWrite, resolve);
    send(["write", lastWrite, resource, token, write]);
  });

// The clock's one timer of its own is there once somebody has waited; it stays, and keeps nobody alive.
systemClock.stayAlive().cancel();
const census = new Census();
const ready = begin();

process.on("message", (message: ToClient) => {
  if (message[0] === "wrote") {
    writes.get(message[1])?.(message[2]);
    writes.delete(message[1]);
    return;
  }
  const [, id, method, ...parameters] = message;
  perform(method, parameters).then(
    (result) => send(["answer", id, result]),
    (error: unknown) => send(["answer", id, undefined, stackOf(error)]),
  );
});

async function begin(): Promise<{ readonly locks: LockManager; readonly worker: Worker }> {
  const locks = await connectPatiently();
  const worker = new Worker(locks, systemClock, recorder, register, birth.setting);
  worker.start();
  return { locks, worker };
}

async function perform(method: string, parameters: readonly unknown[]): Promise<unknown> {
  const { locks, worker } = await ready;
  const [name, ahead] = parameters as [string, number];
  switch (method) {
    case "finish":
      return await worker.finish();
    case "queueUp":
      return await worker.queueUp(name, ahead);
    case "leave":
      return await worker.leave(name);
    case "block":
      return block(parameters[0] as number);
    case "close":
      return await close(locks, worker);
    default:
      throw new Error(`no such command: ${method}`);
  }
}

/** An event loop that is busy with something else. */
function block(ms: number): void {
  recorder.tell({ kind: "stopped", victim: birth.name });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  recorder.tell({ kind: "resumed", victim: birth.name });
}

/** Closes the locks and tells what is left over. Afterwards nothing keeps this process alive but the judge. */
async function close(locks: LockManager, worker: Worker): Promise<readonly string[]> {
  await locks.close();
  for (let turn = 0; turn < 40 && census.left().length > 0; turn++) await pause(50);
  for (const surprise of worker.surprises) trouble(`unexpected error: ${surprise}`);
  return census.left();
}

/** Born while a server is away: that is nobody's mistake. */
async function connectPatiently(): Promise<LockManager> {
  for (let tries = 1; ; tries++) {
    try {
      return await connect(engineFor(birth.spec));
    } catch (error) {
      if (!(error instanceof EngineUnavailableError) || tries === MOST_CONNECTS) throw error;
      await pause(100);
    }
  }
}

/** Not counted by the census. */
function pause(ms: number): Promise<void> {
  return census.pause(ms);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}
