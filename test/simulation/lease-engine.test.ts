/**
 * The core and the lease engine over a simulated network: late, lost and doubled messages, lost bells, paused and
 * killed clients, a frozen server, clocks that drift. `npm run simulate` goes on for as long as you like.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answer, type LeaseStore } from "../../src/engine/lease-store.ts";
import { simulate } from "../../src/testing/simulation/run.ts";

const SEEDS = 150;

test(`${SEEDS} seeds keep every promise`, async () => {
  let grants = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const result = await simulate(seed);
    assert.deepEqual(result.violations, [], `seed ${seed}`);
    grants += result.grants;
  }
  assert.ok(grants > SEEDS * 20, `only ${grants} grants: the simulation has hardly locked anything`);
});

test("the same seed gives the same world", async () => {
  const first = await simulate(7);
  assert.deepEqual(await simulate(7), first);
  assert.notEqual((await simulate(8)).events, first.events);
});

/** How many of the first seeds show a violation with the planted mistake. */
async function seedsThatNotice(plant: (store: LeaseStore) => LeaseStore, seeds = 40): Promise<string[]> {
  const noticed: string[] = [];
  for (let seed = 1; seed <= seeds; seed++) {
    const [violation] = (await simulate(seed, { plant })).violations;
    if (violation !== undefined) noticed.push(violation);
  }
  return noticed;
}

/** `store` with some verbs replaced. */
function altered(store: LeaseStore, verbs: Partial<LeaseStore>): LeaseStore {
  const bound = (key: keyof LeaseStore): unknown => {
    const value = verbs[key] ?? store[key];
    return typeof value === "function" ? value.bind(store) : value;
  };
  return new Proxy(store, { get: (_, key) => bound(key as keyof LeaseStore) });
}

test("a store that renews what is gone is noticed: S1, or S2", async () => {
  const lastToken = new Map<string, bigint>();
  const noticed = await seedsThatNotice((store) =>
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
    }),
  );
  assert.ok(
    noticed.some((each) => /^S[12]/.test(each)),
    noticed.join("\n"),
  );
});

test("a store that promises a longer lease than it keeps is noticed: S1", async () => {
  const noticed = await seedsThatNotice((store) =>
    altered(store, {
      request: (ask) => store.request({ ...ask, ttlMs: ask.ttlMs / 2 }).then(doubled),
      renew: (renewals) =>
        store.renew(renewals.map((each) => ({ ...each, ttlMs: each.ttlMs / 2 }))).then((all) => all.map(doubled)),
    }),
  );
  assert.ok(
    noticed.some((each) => each.startsWith("S1")),
    noticed.join("\n"),
  );
});

function doubled(answer: Answer): Answer {
  return answer.state === "held" ? { ...answer, ttlMs: answer.ttlMs * 2 } : answer;
}

test("a store that forgets to release is noticed: nothing may stay behind", async () => {
  let calls = 0;
  const noticed = await seedsThatNotice((store) =>
    altered(store, {
      // Every third one is renewed for ever instead, as an orphaned watchdog would.
      release: async (name, owner, token) => {
        if (calls++ % 3 !== 0) return await store.release(name, owner, token);
        const again = (): void => {
          void store.renew([{ name, owner, ttlMs: 600_000, pendingTtlMs: 600_000 }]).catch(again);
        };
        again();
      },
    }),
  );
  assert.ok(
    noticed.some((each) => each.startsWith("L1")),
    noticed.join("\n"),
  );
});
