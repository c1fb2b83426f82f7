/** S2 and S3: tokens increase in the order of grants, so that a late writer can be told. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { within } from "../expect.ts";
import { refusesShared, refusesSteal } from "./refusals.ts";

export function assertRising(tokens: readonly bigint[]): void {
  for (const [index, token] of tokens.entries()) {
    const before = tokens[index - 1];
    assert.ok(before === undefined || token > before, `token ${token} was granted after ${before}`);
  }
}

export const TOKENS: readonly CaseDefinition[] = [
  {
    id: "S2/grant-order",
    title: "tokens increase in the order of grants, over several connections",
    needs: {},
    body: async (stage) => {
      const managers = await Promise.all([stage.connect(), stage.connect(), stage.connect()]);
      const tokens: bigint[] = [];
      const requests = managers.flatMap((locks) =>
        Array.from({ length: 5 }, () => locks.request(stage.name, (lock) => tokens.push(lock.token))),
      );
      await within(2 * stage.hangMs, "all requests", Promise.all(requests));
      assert.equal(tokens.length, 15);
      assertRising(tokens);
    },
  },
  {
    id: "S2/again-and-again",
    title: "tokens increase when the name is free in between",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const tokens: bigint[] = [];
      for (let turn = 0; turn < 5; turn++) {
        const lock = await locks.acquire(stage.name);
        tokens.push(lock.token);
        await lock.release();
        if (turn === 2) await stage.gone(locks);
      }
      assertRising(tokens);
    },
  },
  {
    id: "S2/readers",
    title: "readers that hold together have tokens of their own, and the next writer a higher one",
    needs: { traits: ["shared"] },
    otherwise: refusesShared,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const first = await left.acquire(stage.name, { mode: "shared" });
      const second = await right.acquire(stage.name, { mode: "shared" });
      await Promise.all([first.release(), second.release()]);
      const writer = await left.acquire(stage.name);
      assertRising([first.token, second.token, writer.token]);
      await writer.release();
    },
  },
  {
    id: "S2/after-a-steal",
    title: "a waiter that was queued before a steal is granted a higher token than the thief's",
    incidents: [67],
    needs: { traits: ["steal"] },
    otherwise: refusesSteal,
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const victim = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name);
      await stage.pending(left, 1);
      const stolen = await left.request(stage.name, { steal: true }, (lock) => lock.token);
      const waiter = await within(stage.hangMs, "the waiter behind a steal", waiting);
      assertRising([victim.token, stolen, waiter.token]);
      await waiter.release();
    },
  },
  {
    id: "S2/after-a-crash",
    title: "the token after a killed holder is higher",
    needs: { peers: "sharing" },
    body: async (stage) => {
      const locks = await stage.connect();
      const peer = await stage.peer();
      const { token } = await peer.acquire("lock", stage.name);
      await peer.kill();
      const next = await within(stage.takeoverMs, "taking over", locks.acquire(stage.name));
      assertRising([token, next.token]);
      await next.release();
    },
  },
  {
    id: "S2/restart",
    title: "tokens go on increasing after the server was restarted with its data",
    needs: { traits: ["restart"], hooks: ["restartServer"] },
    body: async (stage) => {
      const before = await stage.connect();
      const first = await before.acquire(stage.name);
      await first.release();
      await stage.hook("restartServer")();
      const after = await stage.connect();
      const second = await within(stage.hangMs, "acquiring after a restart", after.acquire(stage.name));
      assertRising([first.token, second.token]);
      await second.release();
    },
  },
  {
    id: "S3/late-write",
    title: "a register that compares tokens refuses the late write of a holder that lost the lock",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      let highest = 0n;
      const write = (token: bigint): boolean => {
        if (token < highest) return false;
        highest = token;
        return true;
      };
      const late = await left.acquire(stage.name);
      assert.ok(write(late.token));
      assert.ok(await right.evict(stage.name, late.token));
      const next = await within(stage.takeoverMs, "the next holder", right.acquire(stage.name));
      assert.ok(write(next.token));
      assert.equal(write(late.token), false, "the late write went through");
      assert.ok(write(next.token));
      await next.release();
    },
  },
];
