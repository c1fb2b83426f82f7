/**
 * Engines that break the model on purpose, each in one way in which real locks have been wrong. The kit has to catch
 * every one of them, by the cases that are named here.
 */
import { instant, sleep, systemClock } from "../../src/engine/clock.ts";
import type { Engine, Grant, Queue, RequestSpec, Traits } from "../../src/engine/engine.ts";
import type { Answer, Ask, LeaseStore, Renewal, StoreEvents } from "../../src/engine/lease-store.ts";
import type { Alteration } from "./subjects/memory.ts";

export interface WrongEngine extends Alteration {
  readonly mistake: string;
  /** Each of these cases fails on it. */
  readonly caughtBy: readonly string[];
}

/** A store that hands everything on; the wrong ones override what they get wrong. */
export class Through implements LeaseStore {
  protected readonly store: LeaseStore;

  constructor(store: LeaseStore) {
    this.store = store;
  }

  get traits(): Traits {
    return this.store.traits;
  }

  open(events: StoreEvents): Promise<void> {
    return this.store.open(events);
  }

  request(ask: Ask): Promise<Answer> {
    return this.store.request(ask);
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.store.renew(renewals);
  }

  release(name: string, owner: string, token: bigint): Promise<void> {
    return this.store.release(name, owner, token);
  }

  withdraw(name: string, owner: string): Promise<void> {
    return this.store.withdraw(name, owner);
  }

  inspect(name: string): Promise<Queue> {
    return this.store.inspect(name);
  }

  names(prefix: string): AsyncIterable<string> {
    return this.store.names(prefix);
  }

  evict(name: string, token: bigint): Promise<boolean> {
    return this.store.evict(name, token);
  }

  close(): Promise<void> {
    return this.store.close();
  }
}

/** Every answer and every grant passes through here. */
abstract class OtherTokens extends Through {
  protected abstract other(token: bigint): bigint;

  override open(events: StoreEvents): Promise<void> {
    const granted = (owner: string, token: bigint): void => events.granted(owner, this.other(token));
    return this.store.open({ check: (owner) => events.check(owner), checkAll: () => events.checkAll(), granted });
  }

  override async request(ask: Ask): Promise<Answer> {
    return this.#answer(await this.store.request(ask));
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return (await this.store.renew(renewals)).map((each) => this.#answer(each));
  }

  override async evict(name: string, token: bigint): Promise<boolean> {
    const own = (await this.store.inspect(name)).find(
      (each) => each.token !== null && this.other(each.token) === token,
    );
    return own?.token != null && (await this.store.evict(name, own.token));
  }

  #answer(answer: Answer): Answer {
    return answer.state === "held" ? { ...answer, token: this.other(answer.token) } : answer;
  }
}

class SameToken extends OtherTokens {
  protected other(): bigint {
    return 7n;
  }
}

class FallingTokens extends OtherTokens {
  protected other(token: bigint): bigint {
    return 2n ** 62n - token;
  }
}

/** Every request has a queue of its own. */
class NoExclusion extends Through {
  override request(ask: Ask): Promise<Answer> {
    return this.store.request({ ...ask, name: own(ask) });
  }

  override renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.store.renew(renewals.map((each) => ({ ...each, name: own(each) })));
  }

  override release(name: string, owner: string, token: bigint): Promise<void> {
    return this.store.release(own({ name, owner }), owner, token);
  }

  override withdraw(name: string, owner: string): Promise<void> {
    return this.store.withdraw(own({ name, owner }), owner);
  }
}

function own({ name, owner }: { readonly name: string; readonly owner: string }): string {
  return `${name} ${owner}`;
}

class WritersShare extends Through {
  override request(ask: Ask): Promise<Answer> {
    return this.store.request(ask.mode === "exclusive" ? ask : { ...ask, mode: "exclusive", name: own(ask) });
  }
}

/** Deletes the lock whoever holds it, as a plain DEL does. */
class ReleasesAnybody extends Through {
  override async release(name: string, owner: string, token: bigint): Promise<void> {
    await this.store.release(name, owner, token);
    await this.#clear(name);
  }

  override async withdraw(name: string, owner: string): Promise<void> {
    await this.store.withdraw(name, owner);
    await this.#clear(name);
  }

  async #clear(name: string): Promise<void> {
    const [head] = await this.store.inspect(name);
    if (head?.token != null) await this.store.evict(name, head.token);
  }
}

/** Sets a new time to live on the key without asking whose it is. */
class RenewsAnybody extends Through {
  readonly #tokens = new Map<string, bigint>();

  override async request(ask: Ask): Promise<Answer> {
    const answer = await this.store.request(ask);
    if (answer.state === "held") this.#tokens.set(ask.owner, answer.token);
    return answer;
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    const answers = await this.store.renew(renewals);
    return answers.map((answer, index) => {
      const renewal = renewals[index];
      const token = renewal === undefined ? undefined : this.#tokens.get(renewal.owner);
      if (answer.state !== "gone" || token === undefined || renewal === undefined) return answer;
      return { state: "held", token, ttlMs: renewal.ttlMs };
    });
  }
}

/** Keys without a time to live: another store would have to remove those of the dead. */
class NeverExpires extends Through {
  override request(ask: Ask): Promise<Answer> {
    return this.store.request({ ...ask, ttlMs: 1e9, pendingTtlMs: 1e9 });
  }
}

/** Who waits hears of its grant by the bell or not at all. */
class BellsOnly extends Through {
  readonly #told = new Set<string>();

  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    const answers = await this.store.renew(renewals);
    return answers.map((answer, index) => {
      const renewal = renewals[index];
      if (answer.state !== "held" || renewal === undefined) return answer;
      if (this.#told.has(renewal.owner)) return answer;
      return { state: "pending", ttlMs: renewal.pendingTtlMs, recheckMs: null };
    });
  }

  override open(events: StoreEvents): Promise<void> {
    return this.store.open({
      granted: (owner, token) => {
        this.#told.add(owner);
        events.granted(owner, token);
      },
      check: (owner) => events.check(owner),
      checkAll: () => events.checkAll(),
    });
  }
}

class AsksAllTheTime extends Through {
  override async request(ask: Ask): Promise<Answer> {
    return hurried(await this.store.request(ask));
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return (await this.store.renew(renewals)).map(hurried);
  }
}

function hurried(answer: Answer): Answer {
  return answer.state === "pending" ? { ...answer, recheckMs: 20 } : answer;
}

/** No bell at all, and nobody is told when to ask again before the keep-alive is due. */
class Deaf extends Through {
  override open(): Promise<void> {
    return this.store.open({ granted: () => {}, check: () => {}, checkAll: () => {} });
  }
}

/** A request that gave up stays in the queue, kept alive by somebody. */
class Orphans extends Through {
  override request(ask: Ask): Promise<Answer> {
    return this.store.request({ ...ask, pendingTtlMs: 1e9 });
  }

  override async withdraw(): Promise<void> {}
}

/** A second try is a second request. */
class NewOwnerEachTime extends Through {
  readonly #latest = new Map<string, string>();
  #tries = 0;

  override request(ask: Ask): Promise<Answer> {
    const owner = `${ask.owner}-${++this.#tries}`;
    this.#latest.set(ask.owner, owner);
    return this.store.request({ ...ask, owner });
  }

  override renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.store.renew(renewals.map((each) => ({ ...each, owner: this.#owner(each.owner) })));
  }

  override release(name: string, owner: string, token: bigint): Promise<void> {
    return this.store.release(name, this.#owner(owner), token);
  }

  override withdraw(name: string, owner: string): Promise<void> {
    return this.store.withdraw(name, this.#owner(owner));
  }

  #owner(owner: string): string {
    return this.#latest.get(owner) ?? owner;
  }
}

/** Everybody tries again and again; whoever comes at the right moment has it. */
class Polls extends Through {
  readonly #asks = new Map<string, Ask>();

  override async request(ask: Ask): Promise<Answer> {
    const answer = await this.store.request({ ...ask, wait: false });
    if (answer.state !== "busy" || !ask.wait) return answer;
    this.#asks.set(ask.owner, ask);
    return this.#pending(ask);
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    const answers: Answer[] = [];
    for (const renewal of renewals) {
      const ask = this.#asks.get(renewal.owner);
      const answer = ask === undefined ? undefined : await this.store.request({ ...ask, wait: false });
      if (ask !== undefined && answer?.state === "busy") answers.push(this.#pending(ask));
      else {
        this.#asks.delete(renewal.owner);
        answers.push(...(answer === undefined ? await this.store.renew([renewal]) : [answer]));
      }
    }
    return answers;
  }

  #pending(ask: Ask): Answer {
    return { state: "pending", ttlMs: ask.pendingTtlMs, recheckMs: 30 };
  }
}

class NoMinimumHold extends Through {
  override release(name: string, owner: string): Promise<void> {
    return this.store.withdraw(name, owner);
  }
}

class AlwaysMinimumHold extends Through {
  override withdraw(name: string, owner: string): Promise<void> {
    return this.store.release(name, owner, 0n);
  }
}

class TriesWait extends Through {
  override async request(ask: Ask): Promise<Answer> {
    const answer = await this.store.request({ ...ask, wait: true });
    return answer.state === "pending" && !ask.wait ? { state: "busy" } : answer;
  }
}

class StealsPolitely extends Through {
  override request(ask: Ask): Promise<Answer> {
    return this.store.request({ ...ask, steal: false });
  }
}

class NamesWithoutCase extends Through {
  override request(ask: Ask): Promise<Answer> {
    return this.store.request({ ...ask, name: ask.name.trimEnd().toLowerCase() });
  }

  override renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.store.renew(renewals.map((each) => ({ ...each, name: each.name.trimEnd().toLowerCase() })));
  }

  override release(name: string, owner: string, token: bigint): Promise<void> {
    return this.store.release(name.trimEnd().toLowerCase(), owner, token);
  }
}

class EvictsAnybody extends Through {
  override async evict(name: string): Promise<boolean> {
    const [head] = await this.store.inspect(name);
    return head?.token != null && (await this.store.evict(name, head.token));
  }
}

class ListsBackwards extends Through {
  override async inspect(name: string): Promise<Queue> {
    return (await this.store.inspect(name)).toReversed();
  }
}

/** An engine that hands everything on. */
export function engineThrough(engine: Engine, request: Engine["request"]): Engine {
  return {
    traits: engine.traits,
    clock: engine.clock,
    open: () => engine.open(),
    request,
    inspect: (name) => engine.inspect(name),
    names: (prefix) => engine.names(prefix),
    evict: (name, token) => engine.evict(name, token),
    close: () => engine.close(),
  };
}

export function grantThrough(grant: Grant, changes: Partial<Grant>): Grant {
  return {
    token: grant.token,
    lease: () => grant.lease(),
    renew: () => grant.renew(),
    release: () => grant.release(),
    discard: () => grant.discard(),
    onLoss: (listener) => grant.onLoss(listener),
    ...changes,
  };
}

/** Changes every grant. */
export function granting(change: (grant: Grant, spec: RequestSpec) => Grant | Promise<Grant>) {
  return (engine: Engine): Engine =>
    engineThrough(engine, async (spec, signal) => {
      const grant = await engine.request(spec, signal);
      return grant === null ? null : await change(grant, spec);
    });
}

export const storing = (Wrong: new (store: LeaseStore) => LeaseStore) => (store: LeaseStore) => new Wrong(store);

export const WRONG_ENGINES: readonly WrongEngine[] = [
  {
    mistake: "everybody is granted at once",
    store: storing(NoExclusion),
    caughtBy: ["S1/connections", "S1/processes", "S1/readers-and-writers", "acquireAll/circle"],
  },
  {
    mistake: "readers do not see writers",
    store: storing(WritersShare),
    caughtBy: ["S1/readers-and-writers"],
  },
  {
    mistake: "the lease is never over for its holder",
    engine: granting((grant) =>
      grantThrough(grant, {
        lease: () => ({ ...grant.lease(), from: instant(systemClock) }),
        onLoss: () => {},
        renew: async () => {},
      }),
    ),
    caughtBy: ["S1/stopped-holder", "loss/evicted", "loss/scoped", "loss/frozen-engine"],
  },
  { mistake: "one token for all", store: storing(SameToken), caughtBy: ["S2/grant-order", "S2/readers"] },
  { mistake: "tokens fall", store: storing(FallingTokens), caughtBy: ["S2/again-and-again", "S3/late-write"] },
  {
    mistake: "release without a look at the owner",
    store: storing(ReleasesAnybody),
    caughtBy: ["S4/release-crosses-eviction", "L4/lost-reply-to-a-release"],
  },
  { mistake: "renewal without a look at the owner", store: storing(RenewsAnybody), caughtBy: ["S4/renew-after-loss"] },
  {
    mistake: "a grant is handed over late",
    engine: granting(async (grant, spec) => {
      await sleep(systemClock, spec.wait ? spec.ttlMs : 0);
      return grant;
    }),
    caughtBy: ["S5/stopped-waiter", "S5/slow-answer"],
  },
  {
    mistake: "leases that never end",
    store: storing(NeverExpires),
    caughtBy: ["L1/killed-holder", "L1/killed-waiter"],
  },
  { mistake: "grants are told by bells alone", store: storing(BellsOnly), caughtBy: ["L2/lost-bells"] },
  { mistake: "waiters ask all the time", store: storing(AsksAllTheTime), caughtBy: ["L2/no-polling"] },
  { mistake: "no bells", store: storing(Deaf), caughtBy: ["L2/prompt"] },
  {
    mistake: "a request that gave up stays in the queue",
    store: storing(Orphans),
    caughtBy: ["L3/time-out", "L3/abort", "L3/frozen", "L3/aborts-that-cross-grants"],
  },
  {
    mistake: "an abort is not heard",
    engine: (engine) => engineThrough(engine, (spec) => engine.request(spec)),
    caughtBy: ["L3/abort", "L5/frozen-wait", "signal/reason", "waitMs/over"],
  },
  {
    mistake: "asking twice is two requests",
    store: storing(NewOwnerEachTime),
    caughtBy: ["L4/lost-reply-to-a-request"],
  },
  {
    mistake: "no queue: whoever asks at the right moment has it",
    store: storing(Polls),
    caughtBy: ["request/fifo", "query/held-and-pending", "L2/no-polling"],
  },
  {
    mistake: "a minimum hold ends with the release",
    store: storing(NoMinimumHold),
    caughtBy: ["minHoldMs/released-early", "minHoldMs/exit"],
  },
  {
    mistake: "a grant that nobody got keeps its minimum hold",
    store: storing(AlwaysMinimumHold),
    caughtBy: ["minHoldMs/undelivered"],
  },
  {
    mistake: "a try that fails stays in the queue",
    store: storing(TriesWait),
    caughtBy: ["L3/try"],
  },
  {
    mistake: "a thief waits its turn",
    store: storing(StealsPolitely),
    caughtBy: ["steal/all-holders", "steal/front-of-the-queue"],
  },
  { mistake: "names differ by letters only", store: storing(NamesWithoutCase), caughtBy: ["names/apart"] },
  { mistake: "any token evicts", store: storing(EvictsAnybody), caughtBy: ["evict/holder"] },
  { mistake: "the queue is listed backwards", store: storing(ListsBackwards), caughtBy: ["query/held-and-pending"] },
];
