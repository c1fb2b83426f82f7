/** What a lock does to the process around it. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { pause, stillPending, within } from "../expect.ts";

export const PROCESS: readonly CaseDefinition[] = [
  {
    id: "process/held-lets-go",
    title: "a held lock does not keep the process alive",
    incidents: [6],
    needs: { peers: "alone" },
    body: async (stage) => {
      const peer = await stage.processPeer();
      await peer.acquire("lock", stage.name, { ttlMs: 60_000 });
      await peer.detach();
      assert.equal(await within(stage.hangMs, "the end of a process that holds a lock", peer.exited), 0);
    },
  },
  {
    id: "process/renewal-under-way",
    title: "nor does a lock that was released while its renewal was under way",
    incidents: [6],
    needs: { peers: "alone" },
    body: async (stage) => {
      const peer = await stage.processPeer();
      for (let round = 0; round < 3; round++) {
        await peer.acquire("lock", stage.name, { ttlMs: 60_000 });
        void peer.renew("lock");
        await peer.release("lock");
      }
      await peer.detach();
      const endMs = stage.takeoverMs + stage.lateMs;
      assert.equal(await within(endMs, "the end of a process that has released", peer.exited), 0);
    },
  },
  {
    id: "process/pending-keeps-alive",
    title: "a pending request does, until it is granted",
    needs: { peers: "alone" },
    body: async (stage) => {
      const peer = await stage.processPeer();
      await peer.acquire("first", stage.name);
      const waiting = peer.acquire("second", stage.name, { waitMs: 60_000 });
      await pause(50);
      await peer.detach();
      await stillPending(700, "a process with a pending request", peer.exited);
      await peer.release("first");
      await within(stage.hangMs, "the pending request", waiting);
      assert.equal(await within(stage.hangMs, "the end of the process", peer.exited), 0);
    },
  },
  {
    id: "process/forgotten-handle",
    title: "a handle that is garbage collected while held warns once",
    needs: { peers: "alone" },
    body: async (stage) => {
      const peer = await stage.processPeer();
      await peer.acquire("lock", stage.name, { ttlMs: 60_000 });
      await peer.acquire("other", `${stage.name} released`);
      await peer.release("other");
      assert.deepEqual(await peer.forget("other", 1_500), []);
      const warnings = await peer.forget("lock", stage.hangMs);
      assert.equal(warnings.length, 1, `warnings: ${warnings.join("; ")}`);
      assert.match(warnings[0] ?? "", /garbage collected/);
      assert.ok(warnings[0]?.includes(JSON.stringify(stage.name)));
    },
  },
];
