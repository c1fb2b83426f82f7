/**
 * More engines that break the model on purpose: each as a lock has failed in public. Together with those of wrong-engines.ts
 * they show that the cases which carry the number of an incident can fail.
 */
import { sleep, systemClock } from "../../src/engine/clock.ts";
import type { Lease } from "../../src/engine/engine.ts";
import type { Answer, Ask, Renewal, StoreEvents } from "../../src/engine/lease-store.ts";
import { EngineUnavailableError } from "../../src/index.ts";
import { granting, grantThrough, storing, Through, type WrongEngine } from "./wrong-engines.ts";

/** Owners that anybody could have drawn. */
class GuessableOwners extends Through {
  override request(ask: Ask): Promise<Answer> {
    return this.store.request({ ...ask, owner: "0.5" });
  }

  override renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.store.renew(renewals.map((each) => ({ ...each, owner: "0.5" })));
  }

  override release(name: string, _owner: string, token: bigint): Promise<void> {
    return this.store.release(name, "0.5", token);
  }
}

/** The token is the place in the queue. */
class TokensOfPlaces extends Through {
  readonly #places = new Map<string, bigint>();

  override open(events: StoreEvents): Promise<void> {
    const granted = (owner: string, token: bigint): void => events.granted(owner, this.#places.get(owner) ?? token);
    return this.store.open({ ...events, granted });
  }

  override async request(ask: Ask): Promise<Answer> {
    if (!this.#places.has(ask.owner)) this.#places.set(ask.owner, BigInt(this.#places.size + 1));
    const answer = await this.store.request(ask);
    return answer.state === "held" ? { ...answer, token: this.#places.get(ask.owner) ?? answer.token } : answer;
  }
}

/** Whoever has asked for a name, on any connection: as a key that all of them share would know. */
const askedFor = new Map<string, Set<string>>();

/** A watchdog renews the key of the name, and so whoever stands in it. */
class RenewsAllOfAName extends Through {
  override request(ask: Ask): Promise<Answer> {
    askedFor.set(ask.name, (askedFor.get(ask.name) ?? new Set()).add(ask.owner));
    return this.store.request(ask);
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    for (const each of renewals) {
      const all = Array.from(askedFor.get(each.name) ?? [], (owner) => ({ ...each, owner }));
      await this.store.renew(all);
    }
    return await this.store.renew(renewals);
  }
}

/** Who holds is asked before the release; a failure is taken for an answer. */
class ForgetsFailedReleases extends Through {
  override async release(name: string, owner: string, token: bigint): Promise<void> {
    try {
      await this.store.inspect(name);
    } catch {
      return;
    }
    await this.store.release(name, owner, token);
  }
}

class NeverReleases extends Through {
  override async release(): Promise<void> {}
}

/** A renewal sets the key again when it is not there. It comes a moment late. */
class RenewsAnew extends Through {
  readonly #asks = new Map<string, Ask>();

  override request(ask: Ask): Promise<Answer> {
    this.#asks.set(ask.owner, ask);
    return this.store.request(ask);
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    await sleep(systemClock, 5);
    for (const { owner } of renewals) {
      const ask = this.#asks.get(owner);
      if (ask !== undefined) await this.store.request(ask);
    }
    return await this.store.renew(renewals);
  }
}

/** The watchdog starts when the lock has been released already. */
class RenewsReleased extends Through {
  override async release(name: string, owner: string, token: bigint): Promise<void> {
    await this.store.release(name, owner, token);
    void this.#watchdog({ name, owner, ttlMs: 600, pendingTtlMs: 600 });
  }

  async #watchdog(renewal: Renewal): Promise<void> {
    for (let turn = 0; turn < 10; turn++) {
      await sleep(systemClock, 200);
      await this.store.renew([renewal]);
    }
  }
}

/** A waiter that has lapsed hears nothing of it until it is its turn. */
class LapsedWaitersWait extends Through {
  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    const answers = await this.store.renew(renewals);
    return answers.map((answer, index) => {
      const ttlMs = renewals[index]?.pendingTtlMs ?? 0;
      return answer.state === "gone" ? { state: "pending", ttlMs, recheckMs: null } : answer;
    });
  }
}

/** Permits come free one by one, and who waits waits for all of them. */
class WaitsForAllPermits extends Through {
  override async request(ask: Ask): Promise<Answer> {
    const answer = await this.store.request({ ...ask, wait: false });
    if (answer.state !== "busy" || !ask.wait) return answer;
    return await this.store.request({ ...ask, mode: "exclusive", limit: 1 });
  }
}

class KeepsNoMinimumHold extends Through {
  override request(ask: Ask): Promise<Answer> {
    return this.store.request({ ...ask, minHoldMs: 0 });
  }
}

/** The lease of the first hold of a name serves for all later ones. */
function oneLeaseForAll(): NonNullable<WrongEngine["engine"]> {
  const leases = new Map<string, Lease>();
  return granting((grant, { name }) => {
    const lease = leases.get(name) ?? grant.lease();
    leases.set(name, lease);
    return grantThrough(grant, { lease: () => lease });
  });
}

export const WRONG_INCIDENTS: readonly WrongEngine[] = [
  { mistake: "owners that can be drawn twice", store: storing(GuessableOwners), caughtBy: ["S4/owners"] },
  { mistake: "the token is given with the place", store: storing(TokensOfPlaces), caughtBy: ["S2/after-a-steal"] },
  { mistake: "a reader renews all readers", store: storing(RenewsAllOfAName), caughtBy: ["L1/killed-reader"] },
  {
    mistake: "a release that fails is forgotten",
    store: storing(ForgetsFailedReleases),
    caughtBy: ["L4/cut-releases"],
  },
  { mistake: "a release that does nothing", store: storing(NeverReleases), caughtBy: ["maxHoldMs/lost"] },
  { mistake: "a late renewal takes the place anew", store: storing(RenewsAnew), caughtBy: ["handle/late-renewal"] },
  { mistake: "renewals go on after the release", store: storing(RenewsReleased), caughtBy: ["handle/renewals-end"] },
  { mistake: "a lapsed waiter is not told", store: storing(LapsedWaitersWait), caughtBy: ["L5/lapsed-waiter"] },
  {
    mistake: "a semaphore's waiter waits for all holders",
    store: storing(WaitsForAllPermits),
    caughtBy: ["semaphore/out-of-order"],
  },
  {
    mistake: "a minimum hold is not kept at all",
    store: storing(KeepsNoMinimumHold),
    caughtBy: ["L1/killed-holder-with-a-minimum-hold"],
  },
  {
    mistake: "releasing what is lost is an error",
    engine: granting((grant) => {
      let lost = false;
      return grantThrough(grant, {
        onLoss: (listener) =>
          grant.onLoss((reason) => {
            lost = true;
            listener(reason);
          }),
        release: () => (lost ? Promise.reject(new Error("not yours")) : grant.release()),
      });
    }),
    caughtBy: ["S4/release-after-loss"],
  },
  {
    mistake: "one renewal that fails is the last",
    engine: granting((grant) => {
      let over = false;
      return grantThrough(grant, {
        renew: async () => {
          if (over) throw new EngineUnavailableError("the watchdog is gone");
          over = true;
          await grant.renew();
          over = false;
        },
      });
    }),
    caughtBy: ["loss/short-freeze"],
  },
  {
    mistake: "a client's wall clock is compared with the server's",
    engine: granting((grant) =>
      grantThrough(grant, {
        lease: () => ({ ...grant.lease(), from: { ...grant.lease().from, wallMs: systemClock.wallMs() } }),
      }),
    ),
    caughtBy: ["L1/drifted-clocks"],
  },
  { mistake: "the lease belongs to the name", engine: oneLeaseForAll(), caughtBy: ["handle/of-its-own"] },
];

/** Cases with the number of an incident that no engine in memory can fail, and why. */
export const BEYOND_MEMORY: Readonly<Record<string, string>> = {
  "S1/blocked-event-loop": "it looks at a process of its own",
  "process/held-lets-go": "it looks at a process of its own",
  "process/renewal-under-way": "it looks at a process of its own",
  "loss/killed-server": "there is no server",
  "loss/session": "there is no session",
  "loss/cut-connections": "there is no connection that stays cut",
};
