/** Other users of the same locks: processes that are stopped and killed, or stand-ins inside this one. */
import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { LeaseOptions, LockManager } from "../index.ts";
import { PausableClock } from "./pausable-clock.ts";
import { PeerHands, type PeerHandsInterface } from "./peer-hands.ts";
import type { Command, PeerFailure, Reply } from "./peer-process.ts";

export interface Peer extends PeerHandsInterface {
  /** Stops it in the middle of whatever it does (SIGSTOP). What it is told meanwhile waits. */
  pause(): void;
  resume(): void;
  /** Ends it without a chance to clean up (SIGKILL). */
  kill(): Promise<void>;
}

/** An error that a peer reported: what can travel of it. */
export class PeerError extends Error {
  override readonly name: string;
  readonly code: unknown;
  readonly reason: unknown;

  constructor(failure: PeerFailure) {
    super(failure.message);
    this.name = failure.name;
    this.code = failure.code;
    this.reason = failure.reason;
  }
}

const METHODS = [
  "acquire",
  "tryAcquire",
  "abort",
  "look",
  "renew",
  "release",
  "forget",
  "contend",
  "block",
  "close",
] as const satisfies readonly (keyof PeerHandsInterface)[];

type Call = (method: string, parameters: readonly unknown[]) => Promise<unknown>;

/** Gives `call` the shape of the hands at its other end. */
function handsOver(call: Call): PeerHandsInterface {
  const entries = METHODS.map((method) => [
    method,
    (...parameters: unknown[]): Promise<unknown> => {
      const result = call(method, parameters);
      result.catch(() => {}); // a case that has failed looks at it no more
      return result;
    },
  ]);
  return Object.fromEntries(entries);
}

export interface ProcessPeer extends Peer {
  readonly pid: number;
  /** Resolves to the exit code, or null when a signal ended it. */
  readonly exited: Promise<number | null>;
  connect(url: string, defaults?: LeaseOptions): Promise<void>;
  /** From now on it lives only as long as its own work does. */
  detach(): Promise<void>;
  /** Whether it keeps this process alive while idle. */
  rest(idle: boolean): void;
}

/** Runs from the compiled package and from source alike. */
const PROGRAM = fileURLToPath(new URL(`./peer-process${import.meta.url.slice(-3)}`, import.meta.url));

/** Of this process's own flags, those that say how modules are found and read. */
const LOADING = /^--(import|require|loader|experimental-(strip|transform)-types|conditions|no-warnings)\b/;

const running = new Set<ChildProcess>();
const killAll = (): void => {
  for (const child of running) child.kill("SIGKILL"); // a stopped one would never notice that we are gone
};

export async function startPeer(): Promise<ProcessPeer> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const execArgv = process.execArgv.filter((flag) => LOADING.test(flag));
  const child = fork(PROGRAM, { serialization: "advanced", execArgv, env });
  if (running.size === 0) process.on("exit", killAll);
  running.add(child);
  const waiting = new Map<number, (reply: Reply) => void>();
  const exited = new Promise<number | null>((resolve) => {
    child.once("exit", (code) => {
      running.delete(child);
      if (running.size === 0) process.off("exit", killAll);
      const gone = { name: "PeerGone", message: "the peer process is gone", code: undefined, reason: undefined };
      for (const [id, settle] of waiting) settle([id, undefined, gone]);
      resolve(code);
    });
  });
  child.on("message", (reply: Reply) => waiting.get(reply[0])?.(reply));
  child.on("error", () => {}); // a command to a dead peer: it rejects through "exit"
  let lastId = 0;
  const call: Call = (method, parameters) =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      waiting.set(id, ([, result, error]) => {
        waiting.delete(id);
        if (error === undefined) resolve(result);
        else reject(new PeerError(error));
      });
      child.send([id, method, ...parameters] satisfies Command, () => {});
    });
  return {
    ...handsOver(call),
    pid: child.pid ?? 0,
    exited,
    connect: async (url, defaults) => void (await call("connect", [url, defaults])),
    detach: async () => void (await call("detach", [])),
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    kill: async () => {
      child.kill("SIGKILL");
      await exited;
    },
    rest: (idle) => {
      if (idle) {
        child.unref();
        child.channel?.unref();
      } else {
        child.ref();
        child.channel?.ref();
      }
    },
  };
}

/** For an engine that lives in one process: a manager whose timers stop, as those of a stopped or killed process do. */
export async function standIn(connect: (clock: PausableClock) => Promise<LockManager>): Promise<Peer> {
  const clock = new PausableClock();
  const hands = new PeerHands(await connect(clock));
  const call: Call = async (method, parameters) => {
    await clock.running();
    const act = Reflect.get(hands, method) as (...parameters: unknown[]) => Promise<unknown>;
    return act.apply(hands, [...parameters]);
  };
  return {
    ...handsOver(call),
    pause: () => clock.pause(),
    resume: () => clock.resume(),
    kill: async () => clock.pause(),
  };
}
