/** COMMAND while it runs: told of the lock's loss, stopped before the lease ends, in no case left behind. */
import { systemClock } from "../engine/clock.ts";
import { LockLostError } from "../engine/errors.ts";
import type { Guard } from "./guard.ts";
import type { Holding } from "./holding.ts";
import type { Ended, Launched } from "./launch.ts";
import type { SignalEvents } from "./signals.ts";

/** How often a stopping COMMAND is looked at. */
const LOOK_MS = 20;
/** After KILL: what is still listed then cannot run any more (a zombie that nobody collects). */
const AFTER_KILL_MS = 1_000;
/** Node's longest timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** A lease is looked at so many times while it lasts, to tell the guard that it was renewed. */
const LOOKS_PER_LEASE = 12;
const SHORTEST_LOOK_MS = 10;

export interface Limits {
  readonly ttlMs: number;
  readonly killAfterMs: number;
  readonly maxHoldMs: number | undefined;
  /** How long before the end of the lease COMMAND has to be gone. */
  readonly slackMs: number;
}

export type Outcome = Ended & {
  readonly maxHoldReached: boolean;
  /** We were stopped (or blocked) for so long that the guard has ended COMMAND. */
  readonly guardActed: boolean;
};

export class Supervisor implements SignalEvents {
  readonly #lock: Holding;
  readonly #launched: Launched;
  readonly #guard: Guard;
  readonly #limits: Limits;
  readonly #timers = new Set<NodeJS.Timeout>();
  #stopping: Promise<void> | undefined;
  #maxHoldReached = false;
  #asked = false;
  #guardKnowsUntilMs = 0;

  constructor(lock: Holding, launched: Launched, guard: Guard, limits: Limits) {
    this.#lock = lock;
    this.#launched = launched;
    this.#guard = guard;
    this.#limits = limits;
  }

  /** Lets COMMAND run. Resolves when it, and after a stop or a violent end the rest of it too, is gone. */
  async run(held: string): Promise<Outcome> {
    const { signal, token } = this.#lock;
    const onLoss = (): void => void this.#stop();
    signal.addEventListener("abort", onLoss);
    this.#watchLease();
    this.#watchMaxHold();
    this.#launched.go(token, held);
    if (signal.aborted) onLoss();
    const ended = await this.#launched.ended;
    const guardActed = this.#guard.hasActed && !this.#maxHoldReached;
    signal.removeEventListener("abort", onLoss);
    // What COMMAND has left behind after an orderly end is its own affair: daemons are started that way.
    if (this.#stopping !== undefined || this.#asked || ended.signal !== null) await this.#stop();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#guard.dismiss();
    return { ...ended, maxHoldReached: this.#maxHoldReached, guardActed };
  }

  asked(): void {
    this.#asked = true;
  }

  /** After Ctrl-Z and `fg`. The group stays stopped until the engine has confirmed the lease. */
  continued(): void {
    void this.#goOn();
  }

  async #goOn(): Promise<void> {
    await this.#lock.renew().catch(() => {}); // not confirmed: what is left of the lease decides
    if (this.#lock.isHeld()) {
      this.#tellGuard();
      this.#launched.members.signal("SIGCONT");
    } else {
      this.#launched.members.signal("SIGKILL");
    }
  }

  #watchLease(): void {
    this.#tellGuard();
    const everyMs = Math.max(SHORTEST_LOOK_MS, this.#limits.ttlMs / LOOKS_PER_LEASE);
    this.#timers.add(setInterval(() => this.#tellGuard(), everyMs));
  }

  #tellGuard(): void {
    const remainingMs = this.#lock.remainingMs();
    const untilMs = systemClock.monotonicMs() + remainingMs;
    // Only what a renewal has added: the guard counts down by itself.
    if (untilMs < this.#guardKnowsUntilMs + 5) return;
    this.#guardKnowsUntilMs = untilMs;
    this.#guard.leaseEndsIn(remainingMs);
  }

  #watchMaxHold(): void {
    const { maxHoldMs } = this.#limits;
    if (maxHoldMs === undefined) return;
    const endsMs = systemClock.monotonicMs() + maxHoldMs;
    const look = (): void => {
      const leftMs = endsMs - systemClock.monotonicMs();
      if (leftMs > 0) {
        this.#timers.add(setTimeout(look, Math.min(leftMs, LONGEST_TIMER_MS)));
      } else {
        this.#maxHoldReached = true;
        void this.#stop();
      }
    };
    look();
  }

  /** TERM, then KILL, to all of it. */
  #stop(): Promise<void> {
    this.#stopping ??= this.#terminate();
    return this.#stopping;
  }

  async #terminate(): Promise<void> {
    const { members } = this.#launched;
    const killAtMs = systemClock.monotonicMs() + this.#limits.killAfterMs;
    if (this.#graceMs(killAtMs) > 0) {
      members.signal("SIGTERM");
      members.signal("SIGCONT"); // a stopped one acts on TERM only when it goes on
    }
    while (this.#graceMs(killAtMs) > 0 && !members.areGone()) await pause(LOOK_MS);
    members.signal("SIGKILL");
    const untilMs = systemClock.monotonicMs() + AFTER_KILL_MS;
    while (systemClock.monotonicMs() < untilMs && !members.areGone()) await pause(LOOK_MS);
  }

  /** How long it may still take to stop: until KILL is due, and never past the lease. */
  #graceMs(killAtMs: number): number {
    const dueMs = killAtMs - systemClock.monotonicMs();
    const reason: unknown = this.#lock.signal.reason;
    // Taken away by hand: the lease is over in any case, and somebody wants COMMAND to end, not to be torn apart.
    if (reason instanceof LockLostError && (reason.reason === "evicted" || reason.reason === "stolen")) return dueMs;
    return Math.min(dueMs, this.#lock.remainingMs() - this.#limits.slackMs);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
