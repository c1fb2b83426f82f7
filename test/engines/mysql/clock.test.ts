/** The server's clock: summer time, winter time, jumps. A lease is judged by UTC, whatever zone the server lives in. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, database, storeOn } from "./database.ts";

const server = database({ clock: true, timeZone: "Europe/Berlin" });

/** Moves the server's clock to that instant. */
async function moveTo(instant: string): Promise<void> {
  await (await server()).setClockOffset(Date.parse(instant) - Date.now());
}

async function localHour(): Promise<string> {
  return String((await (await server()).query("SELECT DATE_FORMAT(SYSDATE(), '%H:%i') AS at"))[0]?.["at"]);
}

for (const [change, before, after, hours] of [
  [
    "incident 63: in autumn, when the clock shows an hour twice",
    "2026-10-25T00:59:50Z",
    "2026-10-25T01:00:10Z",
    ["02:59", "02:00"],
  ],
  [
    "incident 63: in spring, when the clock leaves an hour out",
    "2027-03-28T00:59:50Z",
    "2027-03-28T01:00:10Z",
    ["01:59", "03:00"],
  ],
] as const) {
  test(`${change}, a lease lives exactly as long as it should`, async (t) => {
    const name = change.slice(9, 23);
    await moveTo(before);
    const { store } = await storeOn(t, await server());
    assert.equal(await localHour(), hours[0]);
    const holder = ask(name, { ttlMs: 60_000, pendingTtlMs: 60_000 });
    assert.equal((await store.request(holder)).state, "held");
    await moveTo(after);
    assert.equal(await localHour(), hours[1]);
    assert.equal((await store.request(ask(name, { wait: false }))).state, "busy", "20 s of 60 s are over");
    const [entry] = await store.inspect(name);
    const left = entry?.remainingMs ?? 0;
    assert.ok(left > 30_000 && left < 45_000, `${left} ms are left, about 40,000 should be`);
    const waiter = ask(name, { ttlMs: 60_000, pendingTtlMs: 60_000 });
    const pending = await store.request(waiter);
    assert.ok(pending.state === "pending" && pending.recheckMs !== null && pending.recheckMs < 45_000);
    await moveTo(new Date(Date.parse(after) + 45_000).toISOString());
    const [answer] = await store.renew([{ name, owner: waiter.owner, ttlMs: 60_000, pendingTtlMs: 60_000 }]);
    assert.equal(answer?.state, "held", "65 s of 60 s are over");
    assert.equal(
      (await store.renew([{ name, owner: holder.owner, ttlMs: 60_000, pendingTtlMs: 60_000 }]))[0]?.state,
      "gone",
    );
    await store.withdraw(name, waiter.owner);
  });
}

test("incident 57: tokens grow over a clock that goes back, and over a name that was forgotten", async (t) => {
  await moveTo("2026-12-01T12:00:00Z");
  const { store } = await storeOn(t, await server());
  const first = ask("57");
  const held = await store.request(first);
  assert.ok(held.state === "held");
  await store.release("57", first.owner, held.token);
  await moveTo("2026-12-01T11:30:00Z");
  const second = ask("57");
  const again = await store.request(second);
  assert.ok(again.state === "held" && again.token === held.token + 1n, "the counter goes on");
  await store.release("57", second.owner, again.token);
  await (await server()).query("DELETE FROM holdfast_names WHERE name = '57'");
  await moveTo("2026-12-01T12:00:01Z");
  const third = await store.request(ask("57"));
  assert.ok(third.state === "held" && third.token > again.token, "time went on");
});

test("a lease is never shortened when the server's clock goes back", async (t) => {
  await moveTo("2026-12-02T12:00:00Z");
  const { store } = await storeOn(t, await server());
  const holder = ask("back", { ttlMs: 30_000, pendingTtlMs: 30_000 });
  await store.request(holder);
  await moveTo("2026-12-02T11:59:00Z");
  const [answer] = await store.renew([{ name: "back", owner: holder.owner, ttlMs: 30_000, pendingTtlMs: 30_000 }]);
  assert.equal(answer?.state, "held");
  const [entry] = await store.inspect("back");
  assert.ok((entry?.remainingMs ?? 0) > 80_000, "the old end stands");
});
