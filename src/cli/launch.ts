/** COMMAND: started behind a gate before the lock is asked for, let through when it is held. */
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Writable } from "node:stream";
import { EXIT, Failure } from "./exit-codes.ts";
import { type Members, ProcessGroup, ProcessTree } from "./members.ts";

const SHELL = "/bin/sh";
const GATE = 3;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Launched {
  readonly pid: number;
  readonly members: Members;
  /** Resolves when COMMAND (or its gate) has ended. */
  readonly ended: Promise<Ended>;
  readonly #gate: Writable;
  #open = false;

  constructor(child: ChildProcess, pid: number, foreground: boolean) {
    this.pid = pid;
    this.members = foreground ? new ProcessTree(pid) : new ProcessGroup(pid);
    this.ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    // Index 3 of stdio was asked for as a pipe.
    this.#gate = child.stdio[GATE] as Writable;
    this.#gate.on("error", () => {}); // EPIPE: it ended, and `ended` says so
  }

  /** Lets COMMAND run, with these in its environment. */
  go(token: bigint, held: string): void {
    this.#open = true;
    this.#gate.end(`${token}\n${held}\n`);
  }

  /** Ends the gate when there is nothing to run. Does nothing after `go`. */
  cancel(): void {
    if (this.#open) return;
    this.#gate.destroy();
    this.members.signal("SIGKILL");
  }
}

/**
 * Starts the gate: a shell that waits and then becomes COMMAND, in the same process. It has our standard input, output
 * and error. Errors: `Failure` 126.
 */
export function launch(command: readonly string[], name: string, foreground: boolean): Promise<Launched> {
  const script = readFileSync(new URL("launcher.sh", import.meta.url), "utf8");
  const child = spawn(SHELL, ["-c", script, "holdfast", ...withOddVariables(command)], {
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    detached: !foreground, // a session, and with it a process group, of its own
    env: { ...process.env, HOLDFAST_NAME: name },
  });
  const { pid } = child;
  if (pid !== undefined) return Promise.resolve(new Launched(child, pid, foreground));
  return new Promise((_resolve, reject) => {
    child.once("error", (cause) => {
      reject(new Failure(EXIT.cannotExecute, `cannot start ${SHELL}: ${cause.message}`, { cause }));
    });
  });
}

/** Some shells drop variables whose names they could not use, such as `spring.port`. env(1) gives them back to COMMAND. */
function withOddVariables(command: readonly string[]): readonly string[] {
  const odd = Object.entries(process.env).filter(([variable]) => !/^[A-Za-z_]\w*$/.test(variable));
  if (odd.length === 0 || command[0]?.includes("=")) return command;
  return ["env", "--", ...odd.map(([variable, value]) => `${variable}=${value}`), ...command];
}
