/** The rule in SQL against the rule in TypeScript: the same random commands to both stores, the same answers and queues. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../src/engine/clock.ts";
import type { Answer, Ask, LeaseStore } from "../../../src/engine/lease-store.ts";
import { MemorySpace } from "../../../src/engines/memory/space.ts";
import { MemoryStore } from "../../../src/engines/memory/store.ts";
import { ask, database, storeOn } from "./database.ts";

const server = database();
const COMMANDS = 150;
/** So that no lease ends while the commands run, however slow the machine is. */
const HOUR_MS = 3_600_000;

/** Small, seeded, good enough to shuffle commands. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function randomAsk(name: string, random: (below: number) => number): Ask {
  const kind = random(10);
  if (kind < 5) return ask(name, { wait: random(4) > 0 });
  if (kind < 7) return ask(name, { mode: "shared", limit: Infinity, wait: random(4) > 0 });
  if (kind < 9) return ask(name, { mode: "shared", limit: 1 + random(3), wait: random(4) > 0 });
  return ask(name, { steal: random(2) === 0, minHoldMs: HOUR_MS });
}

/** What can be compared: tokens and times are each store's own. */
function shape(answer: Answer | undefined): string {
  if (answer === undefined) return "nothing";
  if (answer.state === "gone") return `gone, ${answer.reason}`;
  return answer.state === "busy" ? "busy" : `${answer.state}, ${answer.ttlMs}`;
}

async function queueOf(store: LeaseStore, name: string): Promise<{ shapes: string[]; tokens: (bigint | null)[] }> {
  const queue = await store.inspect(name);
  return {
    shapes: queue.map(
      (each) => `${each.mode} ${each.limit} ${each.token === null ? "pending" : "held"} ${each.client.clientId}`,
    ),
    tokens: queue.map((each) => each.token),
  };
}

for (const seed of [1, 2, 3, 4]) {
  test(`seed ${seed}: ${COMMANDS} commands`, async (t) => {
    const random = generator(seed);
    const name = `model ${seed}`;
    const { store } = await storeOn(t, await server());
    const model = new MemoryStore(new MemorySpace(), systemClock);
    await model.open({ granted: () => {}, check: () => {}, checkAll: () => {} });
    const asks: Ask[] = [];
    const history: string[] = [];
    const both = async (what: string, run: (each: LeaseStore) => Promise<string>): Promise<void> => {
      const [expected, actual] = [await run(model), await run(store)];
      history.push(`${what}: ${expected}`);
      assert.equal(actual, expected, history.join("\n"));
    };
    for (let command = 0; command < COMMANDS; command++) {
      const known = asks[random(asks.length)];
      const kind = known === undefined ? 0 : random(10);
      if (known === undefined || kind < 4) {
        const lease = { ttlMs: HOUR_MS, pendingTtlMs: HOUR_MS - 1 };
        const next = { ...randomAsk(name, random), ...lease, client: { clientId: String(command), host: "", pid: 1 } };
        asks.push(next);
        const what = `${command} request ${next.mode} ${next.limit}${next.wait ? "" : ", no wait"}${next.steal ? ", steal" : ""}`;
        await both(what, async (each) => shape(await each.request(next)));
      } else if (kind === 4) {
        await both(`${command} again ${known.client.clientId}`, async (each) => {
          const [there] = await each.renew([known]);
          return there?.state === "gone" ? "gone" : shape(await each.request(known));
        });
      } else if (kind === 5) {
        await both(`${command} renew`, async (each) => shape((await each.renew([known]))[0]));
      } else if (kind === 6) {
        await both(`${command} withdraw ${known.client.clientId}`, (each) =>
          each.withdraw(name, known.owner).then(() => ""),
        );
      } else if (kind === 7) {
        await both(`${command} evict the first`, async (each) => {
          const token = (await each.inspect(name))[0]?.token ?? 1n;
          return String(await each.evict(name, token));
        });
      } else {
        await both(`${command} release ${known.client.clientId}`, (each) =>
          each.release(name, known.owner, 1n).then(() => ""),
        );
      }
      const [expected, actual] = [await queueOf(model, name), await queueOf(store, name)];
      assert.deepEqual(actual.shapes, expected.shapes, history.join("\n"));
      const held = actual.tokens.filter((token) => token !== null);
      assert.equal(new Set(held).size, held.length);
    }
    await model.close();
  });
}
