/**
 * Notices the classic mistake: awaiting a request for a name inside the callback that holds it. Nested requests are
 * legal (not awaited, they are served later), so this only warns, once, when one is still waiting after a while.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Alarms } from "../engine/alarms.ts";
import { type Clock } from "../engine/clock.ts";

const WARN_AFTER_MS = 1_000;

interface Scope {
  readonly name: string;
  readonly outer: Scope | undefined;
  open: boolean;
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

  /** Runs the callback of a held lock. */
  async inside<T>(name: string, run: () => T): Promise<Awaited<T>> {
    const scope: Scope = { name, outer: this.#scopes.getStore(), open: true };
    try {
      return await this.#scopes.run(scope, run);
    } finally {
      scope.open = false;
    }
  }

  /** Passes `wait` on; warns when it lasts inside a scope that holds `name`. */
  async waiting<T>(name: string, wait: Promise<T>): Promise<T> {
    const scope = this.#holding(name);
    if (scope === undefined || this.#warned) return await wait;
    const alarm = this.#alarms.set(this.#clock.monotonicMs() + WARN_AFTER_MS, () => this.#warn(scope));
    try {
      return await wait;
    } finally {
      alarm.cancel();
    }
  }

  #holding(name: string): Scope | undefined {
    let scope = this.#scopes.getStore();
    while (scope !== undefined && (scope.name !== name || !scope.open)) scope = scope.outer;
    return scope;
  }

  #warn(scope: Scope): void {
    if (this.#warned || !scope.open) return;
    this.#warned = true;
    process.emitWarning(
      `a request for lock ${JSON.stringify(scope.name)} waits inside the callback that holds it; awaited there, it never ends.`,
      { code: "HOLDFAST_NESTED" },
    );
  }
}
