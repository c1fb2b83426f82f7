/** What a process holds on to: sockets, timers, listeners. Taken before the first lock and after the last. */
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

const EVENTS = ["exit", "beforeExit", "SIGINT", "SIGTERM", "SIGHUP", "uncaughtException", "warning"] as const;

const MOST_TIMERS = 5_000;
/** Node's own mark on a timer that has fired or was cleared. */
const OVER = "_destroyed";

type CountedTimer = NodeJS.Timeout & { readonly [OVER]: boolean };

export class Census {
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Map<CountedTimer, string>();
  readonly #listeners = listeners();
  readonly #setTimeout = globalThis.setTimeout;

  /** From now on everything is counted. */
  constructor() {
    subscribe("net.client.socket", (message) => {
      const { socket } = message as { socket: Socket };
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#watchTimers();
  }

  /** Waits without being counted. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#setTimeout(resolve, ms));
  }

  /** What is there now that was not there when the census began. */
  left(): string[] {
    this.#forgetOver();
    const now = listeners();
    return [
      ...[...this.#sockets].map((socket) => `a socket to port ${socket.remotePort ?? "?"}, ${socket.readyState}`),
      ...[...this.#timers.values()].map((what) => `a timer: ${what}`),
      ...Object.keys(now)
        .filter((event) => (now[event] ?? 0) > (this.#listeners[event] ?? 0))
        .map((event) => `${now[event]} listeners of process ${event} instead of ${this.#listeners[event]}`),
    ];
  }

  /** Node marks a timer that has fired or was cleared, however that was done. */
  #watchTimers(): void {
    for (const place of [globalThis, process.getBuiltinModule("node:timers")]) {
      for (const name of ["setTimeout", "setInterval"] as const) {
        const set = place[name] as (...parameters: unknown[]) => CountedTimer;
        const counting = (...parameters: unknown[]): CountedTimer => {
          const timer = set(...parameters);
          this.#timers.set(timer, `${name} ${String(parameters[1])} ms ${origin()}`);
          if (this.#timers.size > MOST_TIMERS) this.#forgetOver();
          return timer;
        };
        Object.assign(place, { [name]: Object.assign(counting, set) });
      }
    }
  }

  #forgetOver(): void {
    for (const timer of this.#timers.keys()) if (timer[OVER]) this.#timers.delete(timer);
  }
}

/** Where a timer was made: asked for only when looking for a leak, since it is dear. */
function origin(): string {
  if (process.env["HOLDFAST_TIMERS"] !== "1") return "";
  return (new Error("timer").stack ?? "").split("\n").slice(3, 9).join(" < ");
}

function listeners(): Record<string, number> {
  return Object.fromEntries(EVENTS.map((event) => [event, process.listenerCount(event)]));
}
