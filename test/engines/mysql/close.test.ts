/** What is left of an engine once it is closed: nothing that still runs. Found by the fault suite. */
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { test } from "node:test";
import { EngineUnavailableError, type Timer } from "../../../src/index.ts";
import { PausableClock } from "../../../src/testing/pausable-clock.ts";
import { database, locksOn } from "./database.ts";

const server = database();

/** Knows how many of its timers have neither fired nor been cancelled. */
class CountingClock extends PausableClock {
  readonly waiting = new Set<object>();

  override after(delayMs: number, run: () => void): Timer {
    const mark = {};
    this.waiting.add(mark);
    const timer = super.after(delayMs, () => {
      this.waiting.delete(mark);
      run();
    });
    return {
      cancel: () => {
        this.waiting.delete(mark);
        timer.cancel();
      },
    };
  }
}

void test("sessions that slept on bells leave no timer behind when the engine is closed", async (t) => {
  const clock = new CountingClock();
  const here = await locksOn(t, await server(), { clock });
  const there = await locksOn(t, await server());
  for (let turn = 0; turn < 5; turn++) {
    const lock = await there.acquire("report");
    const waiting = here.acquire("report");
    while ((await there.query({ name: "report" })).pending.length === 0);
    await lock.release();
    await (await waiting).release();
  }
  await here.close();
  assert.equal(clock.waiting.size, 0);
});

void test("sessions that were given up leave no socket behind, also while the server is frozen", async (t) => {
  const mariadb = await server();
  const locks = await locksOn(t, mariadb, { commandTimeoutMs: 200 });
  await (await locks.acquire("report")).release();
  const sockets: Socket[] = [];
  const note = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket);
  subscribe("net.client.socket", note);
  mariadb.freeze();
  try {
    for (let turn = 0; turn < 6; turn++) await assert.rejects(locks.tryAcquire("report"), EngineUnavailableError);
    const open = sockets.filter((socket) => !socket.destroyed).length;
    // A few are being tried at this moment: no more than the engine has connections.
    assert.ok(sockets.length > 10 && open <= 5, `${open} of ${sockets.length} sockets are still open`);
  } finally {
    mariadb.thaw();
    unsubscribe("net.client.socket", note);
  }
});
