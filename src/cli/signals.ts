/** Signals that come to us: while we wait they end the wait, while COMMAND runs they are for COMMAND. */
import { constants } from "node:os";
import { Keyboard } from "./keyboard.ts";
import type { Launched } from "./launch.ts";
import { isStopped } from "./processes.ts";

/** Those that end a wait. */
const ENDING = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"] as const;
/** Those that mean something to COMMAND only. */
const OTHERS = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH"] as const;
/** When to look whether Ctrl-Z has stopped COMMAND: at once as a rule, later when it restores the terminal first. */
const LOOK_AFTER_MS = [5, 20, 75, 200, 700];

export function signalNumber(signal: NodeJS.Signals): number {
  return constants.signals[signal];
}

export interface SignalEvents {
  /** A signal that ends things was passed on to COMMAND: when COMMAND goes, the rest of it goes too. */
  asked(): void;
  /** We go on after a stop. The lease may be over; COMMAND's group is still stopped (not in the foreground). */
  continued(): void;
}

export class Signals {
  readonly #foreground: boolean;
  readonly #waiting = new AbortController();
  #keyboard: Keyboard | undefined;
  #running: { launched: Launched; events: SignalEvents } | undefined;
  #after: ((signal: NodeJS.Signals) => void) | undefined;
  #interrupts = 0;
  #ended: NodeJS.Signals | undefined;

  constructor(foreground: boolean) {
    this.#foreground = foreground;
    this.#keyboard = foreground ? new Keyboard() : undefined;
    for (const signal of [...ENDING, ...OTHERS]) process.on(signal, () => void this.#got(signal));
    process.on("SIGTSTP", () => void this.#stop());
    process.on("SIGCONT", () => this.#running?.events.continued());
  }

  /** Aborts when a signal ends the wait. */
  get waiting(): AbortSignal {
    return this.#waiting.signal;
  }

  /** The signal that ended the wait. */
  get endedWait(): NodeJS.Signals | undefined {
    return this.#ended;
  }

  /** From now on signals are for COMMAND. False when one came before: then COMMAND must not start. */
  run(launched: Launched, events: SignalEvents): boolean {
    if (this.#ended !== undefined) return false;
    this.#running = { launched, events };
    return true;
  }

  /** COMMAND has ended: from now on a signal ends us at once. */
  finish(exit: (signal: NodeJS.Signals) => void): void {
    this.#running = undefined;
    this.#after = exit;
    this.#keyboard?.close();
  }

  /** COMMAND has ended and another one may come: until then a signal ends the wait. */
  again(): void {
    this.#running = undefined;
    this.#after = undefined;
    this.#interrupts = 0;
    this.#keyboard?.close();
    this.#keyboard = this.#foreground ? new Keyboard() : undefined;
  }

  async #got(signal: NodeJS.Signals): Promise<void> {
    const ends = (ENDING as readonly string[]).includes(signal);
    if (this.#after !== undefined) {
      if (ends) this.#after(signal);
    } else if (this.#running === undefined) {
      if (!ends) return;
      this.#ended ??= signal;
      this.#waiting.abort(new Error(`ended by ${signal}`));
    } else {
      await this.#pass(signal, ends, this.#running);
    }
  }

  async #pass(
    signal: NodeJS.Signals,
    ends: boolean,
    { launched, events }: { launched: Launched; events: SignalEvents },
  ): Promise<void> {
    const ofKeyboard = signal === "SIGINT" || signal === "SIGQUIT";
    // The terminal has given it to COMMAND, as it does with the size of the window.
    if (ofKeyboard && (await this.#keyboard?.sent(signal))) return;
    if (signal === "SIGWINCH" && this.#foreground) return;
    if (ends) events.asked();
    if (signal === "SIGINT" && ++this.#interrupts > 1) launched.members.signal("SIGKILL");
    else launched.members.signal(signal);
  }

  /** Ctrl-Z. */
  async #stop(): Promise<void> {
    const launched = this.#running?.launched;
    if (!this.#foreground) {
      // A group whose parent is in another session ignores TSTP: only STOP stops it.
      launched?.members.signal("SIGSTOP");
      process.kill(process.pid, "SIGSTOP");
      return;
    }
    // The terminal has told COMMAND too. Where it goes on all the same (an editor, a shell), so do we: otherwise nobody
    // would renew its lease.
    for (const delayMs of launched === undefined ? [] : LOOK_AFTER_MS) {
      await new Promise((done) => setTimeout(done, delayMs));
      if (launched !== undefined && isStopped(launched.pid)) break;
      if (delayMs === LOOK_AFTER_MS.at(-1)) return;
    }
    process.kill(process.pid, "SIGSTOP");
  }
}
