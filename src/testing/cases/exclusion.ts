/** S1: at any moment at most one exclusive holder is inside its deadline, and never beside a shared one. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { CaseDefinition } from "../case.ts";
import { pause, within } from "../expect.ts";
import type { PeerOptions } from "../peer-hands.ts";
import type { Stage } from "../stage.ts";
import { refusesShared } from "./refusals.ts";
import { refusesLimits } from "./semaphore.ts";
import { assertRising } from "./tokens.ts";

const PEERS = 3;
const TURNS = 12;

/** Peers take their turns at once; inside the lock everybody looks around. Exclusive turns also count. */
async function contend(stage: Stage, turns: readonly PeerOptions[], limit: number): Promise<void> {
  const directory = await stage.directory();
  const peers = await Promise.all(Array.from({ length: PEERS }, () => stage.peer()));
  const programs = peers.map((peer) => peer.contend({ name: stage.name, turns, directory, limit }));
  const results = await within(2 * stage.hangMs, "contending", Promise.all(programs));
  assert.deepEqual(
    results.flatMap((each) => each.violations),
    [],
  );
  const exclusive = turns.filter((turn) => turn.mode !== "shared" && turn.permits === undefined).length;
  const counter = exclusive === 0 ? 0 : Number(await readFile(`${directory}/counter`, "utf8"));
  assert.equal(counter, PEERS * exclusive, "no increment is lost");
  const tokens = results.flatMap((each) => each.tokens);
  assert.equal(new Set(tokens).size, tokens.length, "no two grants have the same token");
  for (const each of results) assertRising(each.tokens);
}

export const EXCLUSION: readonly CaseDefinition[] = [
  {
    id: "S1/connections",
    title: "at most one exclusive holder, over several connections",
    incidents: [22],
    needs: {},
    body: async (stage) => {
      const managers = await Promise.all([stage.connect(), stage.connect(), stage.connect()]);
      let inside = 0;
      let most = 0;
      let turns = 0;
      const work = async (): Promise<void> => {
        most = Math.max(most, ++inside);
        await pause(1);
        turns++;
        inside--;
      };
      const requests = managers.flatMap((locks) =>
        Array.from({ length: 8 }, () =>
          locks.request(stage.name, async (lock) => {
            assert.ok(lock.isHeld());
            await work();
          }),
        ),
      );
      await within(2 * stage.hangMs, "all requests", Promise.all(requests));
      assert.equal(most, 1);
      assert.equal(turns, 24);
    },
  },
  {
    id: "S1/processes",
    title: "at most one exclusive holder, over several processes: no increment of a file is lost",
    needs: { peers: "sharing" },
    body: async (stage) => {
      const turns = Array.from({ length: TURNS }, () => ({}));
      await contend(stage, turns, 1);
    },
  },
  {
    id: "S1/readers-and-writers",
    title: "an exclusive holder is never beside a shared one, over several processes",
    needs: { peers: "sharing", traits: ["shared"] },
    otherwise: refusesShared,
    body: async (stage) => {
      const turns = Array.from({ length: TURNS }, (_, turn): PeerOptions => {
        return { mode: turn % 3 === 1 ? "exclusive" : "shared" };
      });
      await contend(stage, turns, Infinity);
    },
  },
  {
    id: "S1/semaphore",
    title: "at most n holders for a limit of n, over several processes",
    needs: { peers: "sharing", traits: ["limits"] },
    otherwise: refusesLimits,
    body: async (stage) => {
      const turns = Array.from({ length: TURNS }, (): PeerOptions => ({ permits: 2 }));
      await contend(stage, turns, 2);
    },
  },
  {
    id: "S1/stopped-holder",
    title: "a holder that was stopped for longer than its lease has lost it when it wakes",
    incidents: [8],
    needs: { peers: "sharing" },
    body: async (stage) => {
      const locks = await stage.connect();
      const peer = await stage.peer();
      const stopped = await peer.acquire("lock", stage.name);
      assert.ok(stopped.held);
      peer.pause();
      const next = await within(stage.takeoverMs, "taking over from a stopped holder", locks.acquire(stage.name));
      const look = peer.look("lock");
      peer.resume();
      const { held, remainingMs } = await look;
      assert.equal(held, false, "the stopped holder believes that it still holds");
      assert.equal(remainingMs, 0);
      assert.ok(next.isHeld());
      assert.ok(next.token > stopped.token);
      await pause(50);
      assert.equal((await peer.look("lock")).aborted, true, "its signal has not aborted");
      await peer.release("lock");
      await next.renew();
      assert.ok(next.isHeld(), "the late release of the stopped holder harms the next one");
      await next.release();
    },
  },
  {
    id: "S1/blocked-event-loop",
    title: "after a blocked event loop isHeld() is right before any timer has run, and the signal aborts at once",
    incidents: [52],
    needs: { peers: "alone" },
    body: async (stage) => {
      const peer = await stage.processPeer();
      const lock = await peer.acquire("lock", stage.name);
      const { first, afterwards } = await peer.block("lock", lock.remainingMs + 200);
      assert.equal(first.held, false);
      assert.equal(first.remainingMs, 0);
      assert.equal(afterwards.aborted, true);
    },
  },
];
