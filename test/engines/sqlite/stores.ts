/** Lease stores at one lock file, driven directly and in one process, on a clock that the test moves. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import type { Clock } from "../../../src/engine/clock.ts";
import type { Answer, Ask, Renewal } from "../../../src/engine/lease-store.ts";
import type { GuardedGroup } from "../../../src/engines/sqlite/guarded-group.ts";
import { SqliteStore } from "../../../src/engines/sqlite/store.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { temporaryFolder } from "./workers.ts";

/** One store and what it was told by bells. */
export interface Visit {
  readonly store: SqliteStore;
  readonly granted: Map<string, bigint>;
  readonly checked: string[];
}

export interface VisitOptions {
  readonly clock?: Clock;
  readonly bootId?: string;
  readonly guarded?: GuardedGroup;
}

export class LockFile {
  readonly path: string;
  readonly folder: string;
  readonly clock: ManualClock;
  readonly #t: TestContext;
  #owners = 0;

  constructor(t: TestContext, clock: ManualClock = new ManualClock({ monotonicMs: 5_000 })) {
    this.#t = t;
    this.clock = clock;
    this.folder = temporaryFolder(t);
    this.path = join(this.folder, "locks.db");
  }

  async visit(options: VisitOptions = {}): Promise<Visit> {
    const store = new SqliteStore({ path: this.path, clock: this.clock, bootId: "boot 1", ...options });
    const granted = new Map<string, bigint>();
    const checked: string[] = [];
    await store.open({
      granted: (owner, token) => granted.set(owner, token),
      check: (owner) => checked.push(owner),
      checkAll: () => {},
    });
    this.#t.after(() => store.close());
    return { store, granted, checked };
  }

  ask(overrides: Partial<Ask> = {}): Ask {
    return {
      name: "x",
      owner: `owner-${++this.#owners}`,
      mode: "exclusive",
      limit: 1,
      ttlMs: 30_000,
      pendingTtlMs: 10_000,
      minHoldMs: 0,
      wait: true,
      steal: false,
      client: { clientId: "test", host: "here", pid: process.pid },
      ...overrides,
    };
  }

  /** What stands in the file, past the engine. */
  rows(sql: string): Record<string, unknown>[] {
    const database = new DatabaseSync(this.path, { readOnly: true });
    try {
      return database.prepare(sql).all();
    } finally {
      database.close();
    }
  }
}

export function renewal(ask: Ask): Renewal {
  return { name: ask.name, owner: ask.owner, ttlMs: ask.ttlMs, pendingTtlMs: ask.pendingTtlMs };
}

export async function renewOne({ store }: Visit, ask: Ask): Promise<Answer> {
  const [answer] = await store.renew([renewal(ask)]);
  if (answer === undefined) throw new Error("no answer");
  return answer;
}

/** The token of an answer that has to be a grant. */
export function tokenOf(answer: Answer): bigint {
  if (answer.state !== "held") throw new Error(`expected to hold, but: ${answer.state}`);
  return answer.token;
}
