/**
 * In the foreground COMMAND gets Ctrl-C and Ctrl-\ from the terminal itself; passing them on would double them, and many
 * programs take a second one for "at once, without cleaning up". But `kill -INT` on us must reach COMMAND. The system
 * does not tell us who sent a signal, so a small process in our group listens with us: what it hears too came from the
 * keyboard.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { systemClock } from "../engine/clock.ts";

const SHELL = "/bin/sh";
/** How long the listener has to report a signal that we have got. */
const PATIENCE_MS = 200;

export type KeyboardSignal = "SIGINT" | "SIGQUIT";

export class Keyboard {
  readonly #child: ChildProcess;
  /** Signals that the listener got and we have not asked about yet. */
  readonly #heard: Record<KeyboardSignal, number> = { SIGINT: 0, SIGQUIT: 0 };

  constructor() {
    const script = readFileSync(new URL("keyboard.sh", import.meta.url), "utf8");
    this.#child = spawn(SHELL, ["-c", script, "keyboard"], { stdio: ["pipe", "pipe", "ignore"] });
    this.#child.once("error", () => {}); // then every signal is passed on
    this.#child.stdin?.on("error", () => {});
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#heard.SIGINT += text.split("INT").length - 1;
      this.#heard.SIGQUIT += text.split("QUIT").length - 1;
    });
    this.#child.unref();
  }

  /** Whether a signal that we have just got came from the keyboard. */
  async sent(signal: KeyboardSignal): Promise<boolean> {
    const until = systemClock.monotonicMs() + PATIENCE_MS;
    while (this.#heard[signal] === 0 && systemClock.monotonicMs() < until) {
      await new Promise((done) => setTimeout(done, 10));
    }
    const fromKeyboard = this.#heard[signal] > 0;
    this.#heard[signal] = 0;
    return fromKeyboard;
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }
}
