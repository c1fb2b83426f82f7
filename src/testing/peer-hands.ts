/** What a peer does when told: the same commands in a process of its own and in a stand-in inside this one. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { sleep, systemClock } from "../engine/clock.ts";
import type { AcquireOptions, HeldLock, LockManager, LockMode, LossReason, Mutex } from "../index.ts";
import { LockLostError } from "../index.ts";

/** Options that can travel: everything but the signal. `permits` asks for a semaphore. */
export type PeerOptions = Omit<AcquireOptions, "signal"> & { readonly permits?: number };

/** A handle as its owner sees it at one instant. */
export interface Look {
  readonly token: bigint;
  readonly mode: LockMode;
  readonly held: boolean;
  readonly remainingMs: number;
  readonly aborted: boolean;
  readonly reason: LossReason | undefined;
}

/** A program that locks again and again, and watches from inside the lock whether anybody else is there. */
export interface Contention {
  readonly name: string;
  /** One entry a turn. */
  readonly turns: readonly PeerOptions[];
  /** A directory that all contenders of the name share: `counter`, and one file for everybody who is inside. */
  readonly directory: string;
  /** Shared turns: how many may be inside at once. */
  readonly limit: number;
}

export interface Contended {
  /** Of the exclusive turns, in order. */
  readonly tokens: readonly bigint[];
  /** What was seen inside that should not have been. */
  readonly violations: readonly string[];
}

/** `key` names a handle for later commands. */
export interface PeerHandsInterface {
  acquire(key: string, name: string, options?: PeerOptions): Promise<Look>;
  tryAcquire(key: string, name: string, options?: PeerOptions): Promise<Look | null>;
  /** Aborts a pending `acquire`, which rejects with an error named "PeerAbort". */
  abort(key: string): Promise<void>;
  look(key: string): Promise<Look>;
  renew(key: string): Promise<void>;
  release(key: string): Promise<void>;
  /** Drops the handle and collects garbage until a warning comes of it or `patienceMs` are over; resolves to the warnings. */
  forget(key: string, patienceMs: number): Promise<readonly string[]>;
  contend(program: Contention): Promise<Contended>;
  /** Blocks the event loop; what the handle says before any timer has run, and after the loop has turned. */
  block(key: string, ms: number): Promise<{ readonly first: Look; readonly afterwards: Look }>;
  close(): Promise<void>;
}

class PeerAbort extends Error {
  override readonly name: string = "PeerAbort";
}

export class PeerHands implements PeerHandsInterface {
  readonly #locks: LockManager;
  readonly #handles = new Map<string, HeldLock>();
  readonly #aborts = new Map<string, AbortController>();

  constructor(locks: LockManager) {
    this.#locks = locks;
  }

  async acquire(key: string, name: string, options: PeerOptions = {}): Promise<Look> {
    const abort = new AbortController();
    this.#aborts.set(key, abort);
    const lock = await this.#lockFor(name, options).acquire({ ...lease(options), signal: abort.signal });
    const look = lookAt(lock);
    this.#handles.set(key, lock);
    return look;
  }

  async tryAcquire(key: string, name: string, options: PeerOptions = {}): Promise<Look | null> {
    const lock = await this.#lockFor(name, options).tryAcquire(lease(options));
    if (lock !== null) this.#handles.set(key, lock);
    return lock === null ? null : lookAt(lock);
  }

  async abort(key: string): Promise<void> {
    this.#aborts.get(key)?.abort(new PeerAbort("aborted from outside"));
  }

  async look(key: string): Promise<Look> {
    return lookAt(this.#handle(key));
  }

  async renew(key: string): Promise<void> {
    await this.#handle(key).renew();
  }

  async release(key: string): Promise<void> {
    await this.#handle(key).release();
  }

  async forget(key: string, patienceMs: number): Promise<readonly string[]> {
    this.#handles.delete(key);
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => void warnings.push(`${warning.name}: ${warning.message}`);
    process.on("warning", onWarning);
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const untilMs = systemClock.monotonicMs() + patienceMs;
    while (warnings.length === 0 && systemClock.monotonicMs() < untilMs) {
      collect();
      await sleep(systemClock, 50);
    }
    process.off("warning", onWarning);
    return warnings;
  }

  async contend(program: Contention): Promise<Contended> {
    const tokens: bigint[] = [];
    const violations: string[] = [];
    const inside = join(program.directory, "inside");
    await mkdir(inside, { recursive: true });
    for (const options of program.turns) {
      await this.#lockFor(program.name, options).request(lease(options), async (lock) => {
        assert.ok(lock !== null);
        const own = `${lock.mode}-${lock.token}-${process.pid}`;
        await writeFile(join(inside, own), "", { flag: "wx" });
        violations.push(...intruders(await readdir(inside), own, lock.mode, program.limit));
        if (lock.mode === "exclusive") {
          tokens.push(lock.token);
          await increment(join(program.directory, "counter"), own);
        }
        await nextTurn();
        if (!lock.isHeld()) violations.push(`${own} is inside but not held`);
        await unlink(join(inside, own));
      });
    }
    return { tokens, violations };
  }

  async block(key: string, ms: number): Promise<{ first: Look; afterwards: Look }> {
    const lock = this.#handle(key);
    void lock.signal.aborted; // somebody watches it
    await nextTurn();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    const first = lookAt(lock);
    await nextTurn();
    await nextTurn();
    return { first, afterwards: lookAt(lock) };
  }

  async close(): Promise<void> {
    await this.#locks.close();
  }

  #lockFor(name: string, { permits, mode }: PeerOptions): Mutex {
    if (permits !== undefined) return this.#locks.semaphore(name, { permits });
    return mode === "shared" ? this.#locks.readWriteLock(name).read : this.#locks.mutex(name);
  }

  #handle(key: string): HeldLock {
    const lock = this.#handles.get(key);
    if (lock === undefined) throw new Error(`the peer has no handle ${key}`);
    return lock;
  }
}

function lease({ permits: _permits, mode: _mode, ...options }: PeerOptions): Omit<PeerOptions, "mode"> {
  return options;
}

export function lookAt(lock: HeldLock): Look {
  const held = lock.isHeld();
  const { reason } = lock.signal as { reason: unknown };
  return {
    token: lock.token,
    mode: lock.mode,
    held,
    remainingMs: lock.remainingMs(),
    aborted: lock.signal.aborted,
    reason: reason instanceof LockLostError ? reason.reason : undefined,
  };
}

/** Who else is inside and must not be. Everybody looks after entering, so of two that overlap the later one sees it. */
function intruders(present: readonly string[], own: string, mode: LockMode, limit: number): string[] {
  const others = present.filter((each) => each !== own);
  if (mode === "exclusive") return others.map((each) => `${own} met ${each}`);
  const exclusive = others.filter((each) => each.startsWith("exclusive")).map((each) => `${own} met ${each}`);
  return present.length > limit ? [...exclusive, `${present.length} inside: ${present.join(", ")}`] : exclusive;
}

/** A read, a moment, a write: two at once lose an increment. */
async function increment(file: string, own: string): Promise<void> {
  const before = Number(await readFile(file, "utf8").catch(() => "0"));
  await nextTurn();
  await writeFile(`${file}-${own}`, String(before + 1));
  await rename(`${file}-${own}`, file);
}
