/** Stores with a mistake in them, which the simulation has to find. */
import type { Answer, LeaseStore } from "../../src/engine/lease-store.ts";

export type Plant = (store: LeaseStore) => LeaseStore;

/** `store` with some verbs replaced. */
function altered(store: LeaseStore, verbs: Partial<LeaseStore>): LeaseStore {
  const bound = (key: keyof LeaseStore): unknown => {
    const value = verbs[key] ?? store[key];
    return typeof value === "function" ? value.bind(store) : value;
  };
  return new Proxy(store, { get: (_, key) => bound(key as keyof LeaseStore) });
}

/** Renews what is gone already, as a watchdog that looks at the key and not at the owner. */
export function renewsWhatIsGone(): Plant {
  const lastToken = new Map<string, bigint>();
  return (store) =>
    altered(store, {
      request: async (ask) => {
        const answer = await store.request(ask);
        if (answer.state === "held") lastToken.set(ask.owner, answer.token);
        return answer;
      },
      renew: async (renewals) => {
        const answers = await store.renew(renewals);
        return answers.map((answer, index): Answer => {
          const token = lastToken.get(renewals[index]?.owner ?? "");
          if (answer.state !== "gone" || token === undefined) return answer;
          return { state: "held", token, ttlMs: renewals[index]?.ttlMs ?? 0 };
        });
      },
    });
}

/** Promises a lease of twice the length that it keeps. */
export const promisesTooMuch: Plant = (store) =>
  altered(store, {
    request: (ask) => store.request({ ...ask, ttlMs: ask.ttlMs / 2 }).then(doubled),
    renew: (renewals) =>
      store.renew(renewals.map((each) => ({ ...each, ttlMs: each.ttlMs / 2 }))).then((all) => all.map(doubled)),
  });

function doubled(answer: Answer): Answer {
  return answer.state === "held" ? { ...answer, ttlMs: answer.ttlMs * 2 } : answer;
}

/** Every third release is none: an orphaned watchdog goes on renewing. */
export function forgetsToRelease(): Plant {
  let calls = 0;
  return (store) =>
    altered(store, {
      release: async (name, owner, token) => {
        if (calls++ % 3 !== 0) return await store.release(name, owner, token);
        const again = (): void => {
          void store.renew([{ name, owner, ttlMs: 600_000, pendingTtlMs: 600_000 }]).catch(again);
        };
        again();
      },
    });
}

/** One permit more than there are. */
export const givesOnePermitTooMany: Plant = (store) =>
  altered(store, { request: (ask) => store.request(ask.mode === "shared" ? { ...ask, limit: ask.limit + 1 } : ask) });

/** Writers are let in as readers. */
export const letsWritersShare: Plant = (store) =>
  altered(store, {
    request: (ask) => store.request({ ...ask, mode: "shared", limit: ask.mode === "shared" ? ask.limit : Infinity }),
  });

/** A release goes by the name alone: whoever holds it now loses it. */
export function releasesWhoeverHolds(): Plant {
  const holders = new Map<string, string>();
  return (store) =>
    altered(store, {
      request: async (ask) => {
        const answer = await store.request(ask);
        if (answer.state === "held") holders.set(ask.name, ask.owner);
        return answer;
      },
      release: async (name, owner, token) => {
        await store.release(name, holders.get(name) ?? owner, token);
        await store.release(name, owner, token);
      },
    });
}

/** A waiter is forgotten when it gives up: it stays in the queue and is renewed on. */
export const neverWithdraws: Plant = (store) =>
  altered(store, {
    withdraw: async (name, owner) => {
      const again = (): void => {
        void store.renew([{ name, owner, ttlMs: 600_000, pendingTtlMs: 600_000 }]).catch(again);
      };
      again();
    },
  });
