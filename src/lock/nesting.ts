/**
 * Which locks the code that runs now is inside of: scopes follow the async context (`AsyncLocalStorage`). Two uses.
 * A mistake is noticed: awaiting a request for a name inside the callback that holds it; nested requests are legal (not
 * awaited, they are served later), so this only warns, once, when one is still waiting after a while. And re-entrant
 * requests find the hold that they enter again.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Alarms } from "../engine/alarms.ts";
import type { Clock } from "../engine/clock.ts";
import { Branches } from "./branches.ts";
import type { HeldLock } from "./held-lock.ts";
import type { Hold } from "./hold.ts";

const WARN_AFTER_MS = 1_000;

/** A callback that runs while it holds a lock. */
export class Scope {
  readonly hold: Hold;
  readonly handle: HeldLock;
  /** Whether re-entrant requests may enter it again. */
  readonly reentrant: boolean;
  readonly outer: Scope | undefined;
  open = true;
  #branches: Branches | undefined;

  constructor(hold: Hold, handle: HeldLock, reentrant: boolean, around: Scope | undefined) {
    this.hold = hold;
    this.handle = handle;
    this.reentrant = reentrant;
    // Closed scopes are left out, or a callback that starts its own successor would grow the chain for ever.
    let outer = around;
    while (outer?.open === false) outer = outer.outer;
    this.outer = outer;
  }

  get branches(): Branches {
    this.#branches ??= new Branches();
    return this.#branches;
  }

  async close(): Promise<void> {
    // The hold belongs to the branches too, also to one that nobody awaits.
    if (this.#branches !== undefined) await this.#branches.idle();
    this.open = false;
  }
}

export class NestingWatch {
  readonly #scopes = new AsyncLocalStorage<Scope>();
  readonly #alarms: Alarms;
  readonly #clock: Clock;
  #warned = false;

  constructor(alarms: Alarms, clock: Clock) {
    this.#alarms = alarms;
    this.#clock = clock;
  }

  /** Runs the callback of a held lock. Settles when it and all that entered the hold again have ended. */
  async inside<T>(hold: Hold, handle: HeldLock, reentrant: boolean, run: () => T): Promise<Awaited<T>> {
    const scope = new Scope(hold, handle, reentrant, this.#scopes.getStore());
    try {
      return await this.#scopes.run(scope, run);
    } finally {
      await scope.close();
    }
  }

  /** Passes `wait` on; warns when it lasts inside a scope that holds `name`. */
  waiting<T>(name: string, wait: Promise<T>): Promise<T> {
    const scope = this.#warned ? undefined : this.holding(name);
    return scope === undefined ? wait : this.#watched(scope, wait);
  }

  /** The nearest open scope around the caller that holds `name`. */
  holding(name: string): Scope | undefined {
    let scope = this.#scopes.getStore();
    while (scope !== undefined && (scope.hold.name !== name || !scope.open)) scope = scope.outer;
    return scope;
  }

  /** The re-entrant scope that the caller runs in: the nearest open one, or else one that has closed already. */
  entered(name: string): Scope | undefined {
    let closed: Scope | undefined;
    for (let scope = this.#scopes.getStore(); scope !== undefined; scope = scope.outer) {
      if (!scope.reentrant || scope.hold.name !== name) continue;
      if (scope.open) return scope;
      closed ??= scope;
    }
    return closed;
  }

  async #watched<T>(scope: Scope, wait: Promise<T>): Promise<T> {
    const alarm = this.#alarms.set(this.#clock.monotonicMs() + WARN_AFTER_MS, () => this.#warn(scope));
    try {
      return await wait;
    } finally {
      alarm.cancel();
    }
  }

  #warn(scope: Scope): void {
    if (this.#warned || !scope.open) return;
    this.#warned = true;
    process.emitWarning(
      `a request for lock ${JSON.stringify(scope.hold.name)} waits inside the callback that holds it; awaited there, ` +
        "it never ends. A mutex with { reentrant: true } enters again.",
      { code: "HOLDFAST_NESTED" },
    );
  }
}
