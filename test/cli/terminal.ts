/** An interactive shell with job control on a terminal of its own, made by script(1) of util-linux. */
import { spawn } from "node:child_process";
import { cleanEnvironment, MAIN, pause, Running } from "./command-line.ts";

/** The words that start the command line in a shell. */
export const HOLDFAST = `'${process.execPath}' '${MAIN}'`;

export class Terminal extends Running {
  constructor(env: Record<string, string> = {}) {
    const shell = "bash --norc --noprofile -i";
    super(
      spawn("script", ["-q", "-e", "-c", shell, "/dev/null"], {
        stdio: ["pipe", "pipe", "pipe"],
        env: cleanEnvironment({ PS1: "$ ", TERM: "dumb", HISTFILE: "/dev/null", ...env }),
      }),
    );
    this.child.stdin?.on("error", () => {});
  }

  /** Types a line. */
  line(text: string): void {
    this.child.stdin?.write(`${text}\n`);
  }

  /** Presses Ctrl and a key. */
  control(key: "C" | "Z" | "\\"): void {
    this.child.stdin?.write(String.fromCharCode(key.charCodeAt(0) & 0x1f));
  }

  async leave(): Promise<void> {
    this.line("exit");
    await Promise.race([this.finished, pause(5_000)]);
    this.child.kill("SIGKILL");
  }
}
