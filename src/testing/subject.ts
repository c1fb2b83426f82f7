/** An engine under test, as the conformance kit sees it: how to connect, what it promises, which faults can be made. */
import type { Clock } from "../engine/clock.ts";
import type { Traits } from "../engine/engine.ts";
import type { LeaseOptions, LockManager } from "../index.ts";

/**
 * Faults that a case may ask for. Each is optional; a case that needs one which is missing is reported as "not
 * applicable: hook X missing". While a fault of the whole engine is on, no other case runs.
 */
export interface FaultHooks {
  /**
   * Connects with time and timers from `clock`, to suspend a machine or to stop a "process" inside this one. Where it
   * stands for processes (`traits.scope: "process"`), answers and bells must not reach it while a `PausableClock` is
   * paused: a `FaultyStore` sees to that.
   */
  connectWithClock(clock: Clock, defaults?: LeaseOptions): Promise<LockManager>;
  /** Tries to connect to a place where no server is. */
  connectNowhere(): Promise<LockManager>;
  /** Session engines: ends the session of `locks` on the server's side, as if its time had run out. */
  loseSession(locks: LockManager): Promise<void>;
  /** The engine stops answering; connections stay open (SIGSTOP, a write lock held by somebody else). */
  freezeServer(): Promise<void>;
  /** Ends `freezeServer`. What was sent meanwhile may still take effect. */
  thawServer(): Promise<void>;
  /** Resets every connection that there is; new ones work at once. */
  cutConnections(): Promise<void>;
  /** Kills the server and starts it again with its data. Asked of engines with `traits.survivesRestart`. */
  restartServer(): Promise<void>;
  /** Kills the server. The returned function starts it again, with its data. */
  killServer(): Promise<Restore>;
  /** From now on wake-ups are lost, until the returned function is called. */
  dropBells(): Promise<Restore>;
  /** From now on commands take effect but their replies are lost, until the returned function is called. */
  loseReplies(): Promise<Restore>;
  /** How many commands the engine has been asked so far, by anybody. */
  countCommands(): Promise<number>;
}

export type Restore = () => Promise<void>;
export type HookName = keyof FaultHooks;

const HOOK_LIST: Record<HookName, true> = {
  connectWithClock: true,
  connectNowhere: true,
  loseSession: true,
  freezeServer: true,
  thawServer: true,
  cutConnections: true,
  restartServer: true,
  killServer: true,
  dropBells: true,
  loseReplies: true,
  countCommands: true,
};
export const HOOKS: readonly HookName[] = Object.keys(HOOK_LIST) as HookName[];

export interface Subject {
  /** Shown in titles: the engine, its server and client. */
  readonly name: string;
  /** What the engine promises. The kit checks that managers say the same. */
  readonly traits: Traits;
  /** Called once before the first case: start servers, make directories. */
  start?(): Promise<void>;
  /** Called once after the last case, even when `start` failed half-way. */
  stop?(): Promise<void>;
  /** A new connection to the same locks, as another process would make one. */
  connect(defaults?: LeaseOptions): Promise<LockManager>;
  /**
   * The URL by which another process reaches the same locks. With `traits.scope: "process"` it need not be the same
   * ones. Without it, cases that need processes are not applicable.
   */
  url?(): string;
  readonly hooks?: Partial<FaultHooks>;
  /** Why a hook is missing, by its name. The project's own engines give a reason for each. */
  readonly whyNot?: Partial<Record<HookName, string>>;
  /** The lease that cases use, in ms: the shortest with which the engine is at ease. Default 1,000. */
  readonly ttlMs?: number;
  /**
   * The engine's own rounding, in ms: by how much later than its lease a dead holder's lock may pass on (a server
   * that ends sessions in ticks). Default 0.
   */
  readonly roundingMs?: number;
  /** What has not happened after so long never will, in ms. Default 15,000. */
  readonly patienceMs?: number;
}
