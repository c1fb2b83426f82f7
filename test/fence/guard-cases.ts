/** What every guard has to do, whatever it guards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StaleTokenError, type Fencing } from "../../src/fence/index.ts";

/** A guard and the thing behind it: one text for each resource. */
export interface Guarded {
  /** What the caller does before it reads. */
  enter(resource: string, fencing: Fencing): Promise<void>;
  /** Fenced. */
  write(resource: string, fencing: Fencing, value: string): Promise<void>;
  /** Unfenced: what stands there. */
  read(resource: string): Promise<string | undefined>;
}

let cases = 0;
const fresh = (): string => `thing ${++cases}`;

export async function refuses(attempt: Promise<unknown>): Promise<StaleTokenError> {
  const error = await attempt.then(
    () => assert.fail("a stale token was let in"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof StaleTokenError, String(error));
  assert.equal(error.code, "STALE_TOKEN");
  return error;
}

/** `guarded` is asked for when the tests run, `epoch` makes a guard of the same thing for holders of another engine. */
export function guardCases(name: string, guarded: () => Guarded, epoch: (epoch: number) => Guarded): void {
  const it = (title: string, body: () => Promise<void>): void => void test(`${name}: ${title}`, body);

  it("a write with a lower token than one that wrote before is refused, and changes nothing", async () => {
    const [guard, thing] = [guarded(), fresh()];
    await guard.write(thing, 7n, "seven");
    await guard.write(thing, 9n, "nine");
    const error = await refuses(guard.write(thing, 8n, "eight"));
    assert.equal(error.resource, thing);
    assert.equal(error.token, 8n);
    assert.equal(await guard.read(thing), "nine");
    await guard.write(thing, 9n, "nine again");
    assert.equal(await guard.read(thing), "nine again");
  });

  it("to enter is enough: a later holder that has only read is not overwritten by an earlier one", async () => {
    const [guard, thing] = [guarded(), fresh()];
    await guard.enter(thing, 1n);
    await guard.write(thing, 1n, "first");
    await guard.enter(thing, 2n);
    await refuses(guard.write(thing, 1n, "late"));
    await refuses(guard.enter(thing, 1n));
    assert.equal(await guard.read(thing), "first");
    await guard.enter(thing, 2n);
    await guard.write(thing, 2n, "second");
    assert.equal(await guard.read(thing), "second");
  });

  it("each resource by itself, and names are data", async () => {
    const guard = guarded();
    const names = ["a/b", "a%2Fb", "..", ".", "a b", "A B", "a b ", "'; --", "{x}", "\u{1F512}é", "x".repeat(200)];
    for (const [index, thing] of names.entries()) await guard.write(thing, BigInt(1_000 - index), thing);
    for (const thing of names) assert.equal(await guard.read(thing), thing);
    await refuses(guard.write("a/b", 999n, "stale"));
  });

  it("large tokens are compared exactly", async () => {
    const [guard, thing] = [guarded(), fresh()];
    const large = 2n ** 62n;
    await guard.write(thing, large + 1n, "one more");
    await refuses(guard.write(thing, large, "one less"));
    await refuses(guard.write(thing, 99n, "shorter"));
    await guard.write(thing, large + 2n, "two more");
    assert.equal(await guard.read(thing), "two more");
  });

  it("an epoch counts before the token", async () => {
    const thing = fresh();
    await epoch(2).write(thing, 1_000n, "old engine");
    await epoch(10).write(thing, 5n, "new engine");
    await refuses(epoch(2).write(thing, 2_000n, "old engine"));
    await refuses(epoch(10).enter(thing, 4n));
    assert.equal(await guarded().read(thing), "new engine");
  });

  it("takes a held lock, and no shared one", async () => {
    const [guard, thing] = [guarded(), fresh()];
    await guard.write(thing, { token: 3n, mode: "exclusive" }, "lock");
    assert.equal(await guard.read(thing), "lock");
    await assert.rejects(guard.write(thing, { token: 4n, mode: "shared" }, "reader"), { code: "CONFIG" });
    await assert.rejects(guard.enter(thing, { token: "5" as never }), TypeError);
    await assert.rejects(guard.enter(thing, -1n), { code: "CONFIG" });
    await assert.rejects(guard.enter(thing, 2n ** 63n), { code: "CONFIG" });
    assert.equal(await guard.read(thing), "lock");
  });

  it("of many at once the latest wins, whatever the order", async () => {
    const [guard, thing] = [guarded(), fresh()];
    const tokens = Array.from({ length: 30 }, (_, index) => BigInt(((index * 7) % 30) + 1));
    const outcomes = await Promise.allSettled(tokens.map((token) => guard.write(thing, token, String(token))));
    assert.equal(await guard.read(thing), "30");
    assert.equal(outcomes[tokens.indexOf(30n)]?.status, "fulfilled");
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") assert.ok(outcome.reason instanceof StaleTokenError, String(outcome.reason));
    }
  });
}
