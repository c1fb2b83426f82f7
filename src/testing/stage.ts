/** What one case works with: connections, peers, a name of its own; and the tidying up afterwards. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import { systemClock, type Clock } from "../engine/clock.ts";
import type { LeaseOptions, LockInfo, LockManager, Traits } from "../index.ts";
import { eventually, within } from "./expect.ts";
import { standIn, startPeer, type Peer, type ProcessPeer } from "./peer.ts";
import type { FaultHooks, HookName, Restore, Subject } from "./subject.ts";

const DEFAULT_TTL_MS = 1_000;
const STEADY_TTL_MS = 3_000;
const LATE_MS = 2_000;
/** After so long something hangs. */
const DEFAULT_PATIENCE_MS = 15_000;

export class Stage {
  readonly subject: Subject;
  /** Of this case alone. */
  readonly name: string;
  /** The lease to work with. */
  readonly ttlMs: number;
  /** A lease that a busy machine can keep alive: for locks that have to last. */
  readonly steadyTtlMs: number;
  /** By how much the machine may be late. */
  readonly lateMs: number;
  readonly hangMs: number;
  readonly #endings: (() => Promise<unknown>)[] = [];
  /** What the subject gave for each of the managers that the case has. */
  readonly #managers = new WeakMap<LockManager, LockManager>();

  /** @param slowness By how much longer than usual leases last, on a machine that does not keep up. */
  constructor(subject: Subject, id: string, slowness = 1) {
    this.subject = subject;
    this.name = `${id} ${Buffer.from(systemClock.randomBytes(6)).toString("base64url")}`;
    this.ttlMs = slowness * (subject.ttlMs ?? DEFAULT_TTL_MS);
    this.steadyTtlMs = Math.max(this.ttlMs, slowness * STEADY_TTL_MS);
    this.lateMs = slowness * LATE_MS;
    this.hangMs = subject.patienceMs ?? DEFAULT_PATIENCE_MS;
  }

  get traits(): Traits {
    return this.subject.traits;
  }

  /** By when a dead holder's lock has to have passed on. */
  get takeoverMs(): number {
    return this.ttlMs + (this.subject.roundingMs ?? 0) + this.lateMs;
  }

  /** A connection of its own, closed after the case. */
  async connect(defaults?: LeaseOptions): Promise<LockManager> {
    return this.#closing(await this.subject.connect({ ttlMs: this.ttlMs, ...defaults }));
  }

  async connectWithClock(clock: Clock, defaults?: LeaseOptions): Promise<LockManager> {
    return this.#closing(await this.hook("connectWithClock")(clock, { ttlMs: this.ttlMs, ...defaults }));
  }

  /** Another user of the same locks: a process, or for an engine of one process a stand-in. */
  async peer(): Promise<Peer> {
    if (this.traits.scope !== "process") return this.processPeer();
    const peer = await standIn((clock) => this.connectWithClock(clock));
    this.after(async () => peer.resume());
    return peer;
  }

  /** A process of its own; for an engine of one process it has locks of its own. */
  async processPeer(): Promise<ProcessPeer> {
    const url = this.subject.url?.();
    assert.ok(url !== undefined, "the subject has no url");
    const peer = await startPeer();
    this.after(async () => {
      peer.rest(true);
      await peer.kill();
    });
    await within(this.hangMs, "connecting from another process", peer.connect(url, { ttlMs: this.ttlMs }));
    return peer;
  }

  /** A directory that is removed after the case. */
  async directory(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), "holdfast-kit-"));
    this.after(() => rm(path, { recursive: true, force: true }));
    return path;
  }

  /** A fault hook. Cases name the hooks that they need, so it is there. */
  hook<Name extends HookName>(name: Name): FaultHooks[Name] {
    const { hooks } = this.subject;
    const hook = hooks?.[name];
    assert.ok(hook !== undefined, `the case uses the hook ${name} without saying so`);
    return hook.bind(hooks) as FaultHooks[Name];
  }

  /** Freezes the engine until the returned function is called, or the case ends. */
  async freeze(): Promise<Restore> {
    await this.hook("freezeServer")();
    return this.#once(this.hook("thawServer"));
  }

  /** Kills the server until the returned function is called, or the case ends. */
  async kill(): Promise<Restore> {
    return this.#once(await this.hook("killServer")());
  }

  async dropBells(): Promise<Restore> {
    return this.#once(await this.hook("dropBells")());
  }

  async loseReplies(): Promise<Restore> {
    return this.#once(await this.hook("loseReplies")());
  }

  async loseSession(locks: LockManager): Promise<void> {
    await this.hook("loseSession")(this.#managers.get(locks) ?? locks);
  }

  /** The queue of this case's name, or of another, as `locks` sees it. */
  async queue(locks: LockManager, name: string = this.name): Promise<{ held: LockInfo[]; pending: LockInfo[] }> {
    const { held, pending } = await locks.query({ prefix: name });
    return { held: held.filter((each) => each.name === name), pending: pending.filter((each) => each.name === name) };
  }

  /** Waits until so many requests for this case's name are pending. */
  async pending(locks: LockManager, count: number, name: string = this.name): Promise<void> {
    await eventually(this.hangMs, `${count} requests pending`, async () => {
      return (await this.queue(locks, name)).pending.length === count;
    });
  }

  /** Waits until nothing of this case's name is left in the engine: at once, or when leases have ended. */
  async gone(locks: LockManager, withinMs: number = this.takeoverMs): Promise<void> {
    await eventually(withinMs, `nothing left of ${this.name}`, async () => {
      const { held, pending } = await this.queue(locks);
      return held.length + pending.length === 0;
    });
  }

  /** Does `ending` after the case, last things first. */
  after(ending: () => Promise<unknown>): void {
    this.#endings.unshift(ending);
  }

  async end(): Promise<void> {
    for (const ending of this.#endings.splice(0)) {
      await within(this.hangMs, "tidying up after the case", ending());
    }
  }

  #closing(locks: LockManager): LockManager {
    this.after(() => locks.close());
    const quiet = withoutStrays(locks);
    this.#managers.set(quiet, locks);
    return quiet;
  }

  #once(restore: Restore): Restore {
    let restored: Promise<void> | undefined;
    const once = (): Promise<void> => (restored ??= restore());
    this.after(once);
    return once;
  }
}

/**
 * The same manager, except that a promise which nobody looks at any more may reject: when a case has failed, its
 * requests under way end with the connection, and that is no further failure.
 */
function withoutStrays(locks: LockManager): LockManager {
  return new Proxy(locks, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...parameters: unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, parameters);
        if (result instanceof Promise) result.catch(() => {});
        return result;
      };
    },
  });
}
