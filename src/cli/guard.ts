/**
 * The guard: a small process that ends COMMAND when we cannot. It learns of our death by the end of a pipe whose only
 * writer we are, and of our silence (stopped, or an event loop that is blocked) by a countdown that we restart with
 * every renewed lease.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Writable } from "node:stream";
import { systemClock } from "../engine/clock.ts";

const SHELL = "/bin/sh";
/** A guard that was killed is replaced at once; when that does not help, after pauses that double up to this. */
const LONGEST_PAUSE_MS = 5_000;

export interface GuardOptions {
  readonly pid: number;
  readonly foreground: boolean;
  readonly killAfterMs: number;
  /** How long before the end of the lease COMMAND has to be gone. */
  readonly slackMs: number;
}

export class Guard {
  readonly #options: GuardOptions;
  readonly #script = readFileSync(new URL("guard.sh", import.meta.url), "utf8");
  #child: ChildProcess | undefined;
  #leaseEndsMs: number | undefined;
  #hasActed = false;
  #dismissed = false;
  #pauseMs = 0;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#start();
  }

  /** Told whenever the lease was renewed: it ends in `remainingMs`. */
  leaseEndsIn(remainingMs: number): void {
    this.#leaseEndsMs = systemClock.monotonicMs() + remainingMs;
    this.#tell();
  }

  /** Whether it has heard nothing from us for so long that it has ended COMMAND. Known before COMMAND's end is. */
  get hasActed(): boolean {
    return this.#hasActed;
  }

  /** COMMAND has ended; the guard goes, and what COMMAND left behind in its group is left alone. */
  dismiss(): void {
    this.#dismissed = true;
    this.#kill();
  }

  #start(): void {
    const { pid, foreground, killAfterMs } = this.#options;
    const kind = foreground ? "tree" : "group";
    const tenths = String(Math.ceil(killAfterMs / 100));
    // Not `sh guard.sh`: the path would name us, and `pkill -f holdfast` must not end the guard too.
    const child = spawn(SHELL, ["-c", 'eval "$GUARD"', "guard", kind, String(pid), tenths], {
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
      env: { GUARD: this.#script, PATH: `${process.env["PATH"] ?? ""}:/usr/bin:/bin` },
      cwd: "/",
    });
    this.#child = child;
    child.stdin.on("error", () => {}); // it ended, and "exit" says so
    child.stdout.once("data", () => (this.#hasActed = true));
    child.once("error", () => this.#restartLater());
    child.once("exit", () => {
      if (this.#dismissed) return;
      this.#kill(); // its countdown, which would go on without it
      this.#restartLater();
    });
    child.unref();
    this.#tell();
  }

  #restartLater(): void {
    if (this.#dismissed) return;
    setTimeout(() => !this.#dismissed && this.#start(), this.#pauseMs).unref();
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2 + 20);
  }

  #tell(): void {
    const pipe: Writable | null | undefined = this.#child?.stdin;
    // A guard that does not read (stopped) must not fill our memory. It gets the next line when it reads again.
    if (this.#leaseEndsMs === undefined || !pipe?.writable || pipe.writableNeedDrain) return;
    const { killAfterMs, slackMs } = this.#options;
    const untilKill = Math.max(0, this.#leaseEndsMs - systemClock.monotonicMs() - slackMs);
    const untilTerm = Math.max(0, untilKill - killAfterMs);
    pipe.write(`${seconds(untilTerm)} ${seconds(untilKill - untilTerm)}\n`);
  }

  /** The guard leads a group of its own, in which its countdown is too. */
  #kill(): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // gone already
    }
  }
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}
