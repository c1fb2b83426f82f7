/** `election`: one leader, its term, its value, and who looks on. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { aborted, eventually, pause, rejection, within } from "../expect.ts";
import { assertRising } from "./tokens.ts";

export const ELECTION: readonly CaseDefinition[] = [
  {
    id: "election/terms",
    title: "one leader at a time among several connections; terms are numbered upwards",
    needs: {},
    body: async (stage) => {
      const managers = await Promise.all([stage.connect(), stage.connect(), stage.connect()]);
      const terms: bigint[] = [];
      let leading = 0;
      const work = managers.map((locks) =>
        locks.election(stage.name).lead(
          async (term) => {
            assert.equal(++leading, 1, "two lead");
            terms.push(term.token);
            await pause(20);
            leading--;
          },
          { signal: new AbortController().signal },
        ),
      );
      await within(2 * stage.hangMs, "three terms", Promise.all(work));
      assert.equal(terms.length, 3);
      assertRising(terms);
    },
  },
  {
    id: "election/value",
    title: "everybody sees who leads and what it publishes, and not what candidates would",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const election = right.election(stage.name);
      assert.equal(await election.leader(), null);
      const value = JSON.stringify({ address: "http://10.0.0.1:80/?a=b", text: "Führung 🔒 'quoted' \\ %_ \u0000" });
      const term = await left.election(stage.name).campaign({ value });
      const seen = await election.leader();
      assert.equal(seen?.value, value);
      assert.equal(seen.token, term.token);
      assert.equal(seen.pid, process.pid);
      const controller = new AbortController();
      const standing = rejection(election.campaign({ value: "next", signal: controller.signal }));
      await stage.pending(left, 1);
      assert.equal((await election.leader())?.value, value);
      controller.abort();
      await standing;
      await term.release();
      assert.equal(await election.leader(), null);
      const largest = "\u00e9".repeat(2_048);
      const next = await election.campaign({ value: largest });
      assert.equal((await left.election(stage.name).leader())?.value, largest);
      await next.release();
      const silent = await election.campaign();
      assert.equal((await election.leader())?.value, null);
      await silent.release();
    },
  },
  {
    id: "election/again",
    title: "a loss ends the term, not the candidacy; the next term has a higher number",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const terms: bigint[] = [];
      const leading = locks.election(stage.name).lead(
        async (term) => {
          terms.push(term.token);
          if (terms.length > 1) return;
          await other.evict(stage.name, term.token);
          throw await aborted(term.signal);
        },
        { signal: new AbortController().signal },
      );
      await within(stage.hangMs + stage.takeoverMs, "the second term", leading);
      assert.equal(terms.length, 2);
      assertRising(terms);
    },
  },
  {
    id: "election/stop",
    title: "the signal ends a term and a candidacy, and nothing stays behind",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const stop = new AbortController();
      const serve = (locks: typeof left): Promise<void> =>
        locks.election(stage.name).lead((term) => aborted(term.signal), { signal: stop.signal });
      const both = Promise.all([serve(left), serve(right)]);
      await stage.pending(left, 1);
      stop.abort();
      await within(stage.lateMs, "stopping", both);
      await stage.gone(left);
    },
  },
  {
    id: "election/observe",
    title: "an observer sees the leader, the gap, and the next leader",
    needs: {},
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const seen: (string | null)[] = [];
      const stop = new AbortController();
      const observing = (async () => {
        const options = { signal: stop.signal, everyMs: 100 };
        for await (const leader of right.election(stage.name).observe(options)) seen.push(leader?.value ?? null);
      })();
      const sees = (count: number): Promise<void> =>
        eventually(stage.hangMs, `${count} changes`, () => seen.length >= count);
      await sees(1);
      const one = await left.election(stage.name).campaign({ value: "one" });
      await sees(2);
      await one.release();
      await sees(3);
      const two = await left.election(stage.name).campaign({ value: "two" });
      await sees(4);
      stop.abort();
      await within(stage.lateMs, "the end of the iteration", observing);
      assert.deepEqual(seen, [null, "one", null, "two"]);
      await two.release();
    },
  },
];
