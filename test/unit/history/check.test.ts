/** The checker on histories written by hand: what it lets pass, and what it does not. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Story } from "./story.ts";

const story = (): Story => new Story();

void describe("S1", () => {
  void test("one after the other is no overlap, also at the same instant", () => {
    const told = story().holds("a", [10, 500]).releases("a", 40).holds("b", [40, 600]).releases("b", 50);
    assert.deepEqual(told.verdict(), {});
  });

  void test("two exclusive holders overlap", () => {
    const told = story().holds("a", [10, 500]).holds("b", [20, 600]).releases("a", 30).releases("b", 50);
    assert.deepEqual(told.verdict(), { S1: 1 });
  });

  void test("a hold ends at its deadline, wherever its release is", () => {
    const told = story().holds("a", [10, 100]).holds("b", [100, 600]).releases("a", 300).releases("b", 310);
    assert.deepEqual(told.verdict(), {});
  });

  void test("a deadline that was seen to move on counts", () => {
    const told = story()
      .holds("a", [10, 100])
      .tell("a", 60, { kind: "held", id: "a", untilMs: 160 })
      .holds("b", [120, 600]);
    assert.deepEqual(told.releases("a", 300).releases("b", 310).verdict(), { S1: 1 });
  });

  void test("a hold ends when its process is killed, and when it is lost", () => {
    const told = story().holds("a", [10, 500]).tell("judge", 20, { kind: "killed", victim: "a" });
    told.holds("b", [30, 500]).tell("b", 40, { kind: "lost", id: "b", why: "stolen" });
    assert.deepEqual(told.holds("c", [50, 500]).releases("b", 60).releases("c", 60).verdict(), {});
  });

  void test("a stopped holder holds on until its deadline", () => {
    const told = story().holds("a", [10, 500]).tell("judge", 20, { kind: "stopped", victim: "a" });
    assert.deepEqual(told.holds("b", [30, 500]).releases("b", 60).until(70).verdict(), { S1: 1 });
  });

  void test("readers overlap, a writer among them does not", () => {
    const shared = true;
    const readers = story().holds("a", [10, 500], { shared }).holds("b", [20, 500], { shared });
    readers.releases("a", 40).releases("b", 60);
    assert.deepEqual(readers.verdict(), {});
    assert.deepEqual(readers.holds("c", [50, 500]).releases("c", 90).verdict(), { S1: 1 });
  });

  void test("three of two permits", () => {
    const told = story();
    for (const [index, who] of ["a", "b", "c"].entries()) told.holds(who, [10 + index, 500], { limit: 2 });
    assert.deepEqual(told.releases("a", 30).releases("b", 30).releases("c", 30).verdict(), { S1: 1 });
  });

  void test("the smallest limit inside counts, not only one's own", () => {
    const told = story().holds("a", [10, 500], { limit: 1 }).holds("b", [20, 500], { limit: 5 });
    assert.deepEqual(told.releases("a", 30).releases("b", 30).verdict(), { S1: 1 });
  });

  void test("an overlap while a fault had broken an assumption is excused, and told apart", () => {
    const told = story().disturbed(5, 200, true).holds("a", [10, 500]).holds("b", [20, 600]);
    told.releases("a", 30).releases("b", 50);
    assert.deepEqual(told.verdict(), {});
    assert.equal(told.excused(), 1);
  });

  void test("a fault that breaks no assumption excuses nothing", () => {
    const told = story().disturbed(5, 200).holds("a", [10, 500]).holds("b", [20, 600]);
    assert.deepEqual(told.releases("a", 30).releases("b", 50).verdict(), { S1: 1 });
  });

  void test("who relies on a lock for ever meets the next one", () => {
    const told = story().holds("a", [10, null], { token: null }).holds("b", [900, null], { token: null });
    assert.deepEqual(told.releases("a", 950).releases("b", 990).verdict(), { S1: 1 });
  });
});

void describe("S2", () => {
  const pair = (first: number, second: number): Story =>
    story()
      .holds("a", [10, 500], { token: first })
      .releases("a", 20)
      .holds("b", [40, 500], { token: second })
      .releases("b", 50);

  void test("growing tokens pass, repeated and falling ones do not", () => {
    assert.deepEqual(pair(7, 8).verdict(), {});
    assert.deepEqual(pair(7, 7).verdict(), { S2: 1 });
    assert.deepEqual(pair(8, 7).verdict(), { S2: 1 });
  });

  void test("the second had waited all the time: of two holders the later has the higher token", () => {
    const told = story().holds("a", [10, 500], { token: 8 }).releases("a", 20);
    assert.deepEqual(told.holds("b", [40, 500], { token: 7, ask: 5 }).releases("b", 50).verdict(), { S2: 1 });
  });

  void test("readers that were granted at the same time may be told in any order", () => {
    const told = story().holds("a", [10, 500], { token: 8, shared: true });
    told.holds("b", [12, 500], { token: 7, shared: true, ask: 5 }).releases("a", 20).releases("b", 20);
    assert.deepEqual(told.verdict(), {});
  });

  void test("no fault excuses a falling token in real time", () => {
    assert.deepEqual(pair(8, 7).disturbed(1, 100, true).verdict(), { S2: 1 });
  });

  void test("other names have tokens of their own", () => {
    const told = story().holds("a", [10, 500], { token: 8 }).releases("a", 20);
    assert.deepEqual(told.holds("b", [40, 500], { token: 7, name: "m" }).releases("b", 50).verdict(), {});
  });
});

void describe("S3", () => {
  const paused = (): Story => story().holds("a", [10, 100]).holds("b", [150, 500]);
  const ended = (told: Story): Story => told.releases("a", 400).releases("b", 400);

  void test("a refused late write is right, an accepted one is not", () => {
    assert.deepEqual(ended(paused().writes("b", 160, "w1", true).writes("a", 200, "w2", false)).verdict(), {});
    assert.deepEqual(ended(paused().writes("b", 160, "w1", true).writes("a", 200, "w2", true)).verdict(), { S3: 1 });
  });

  void test("two writes at the same time: only what the resource remembers can tell", () => {
    const told = (): Story => ended(paused().writes("b", 160, "w1", true).writes("a", 160.5, "w2", true));
    assert.deepEqual(told().remembered(450, "w2", "w1").verdict(), {});
    assert.deepEqual(told().remembered(450, "w1", "w2").verdict(), { S3: 1 });
  });

  void test("what was accepted is there, what was refused is not, of the rest either is right", () => {
    const told = (): Story =>
      ended(paused().writes("b", 160, "w1", true).writes("b", 170, "w2").writes("a", 200, "w3", false));
    assert.deepEqual(told().remembered(450, "w1").verdict(), {});
    assert.deepEqual(told().remembered(450, "w1", "w2").verdict(), {});
    assert.deepEqual(told().remembered(450, "w2").verdict(), { S3: 1 });
    assert.deepEqual(told().remembered(450, "w1", "w1").verdict(), { S3: 1 });
    assert.deepEqual(told().remembered(450, "w1", "w9").verdict(), { S3: 1 });
    assert.deepEqual(told().remembered(450, "w3", "w1").verdict(), { S3: 1 });
  });

  void test("without tokens, the order of the grants decides", () => {
    const told = story().holds("a", [10, 100], { token: null }).holds("b", [150, 500], { token: null });
    assert.deepEqual(ended(told.writes("b", 160, "w1", true).writes("a", 200, "w2", true)).verdict(), { S3: 1 });
  });
});

void describe("S4", () => {
  const lost = (why: string, atMs: number): Story =>
    story().holds("a", [10, 500]).tell("a", atMs, { kind: "lost", id: "a", why }).releases("a", 600);

  void test("lost at the deadline is right, lost before it is not", () => {
    assert.deepEqual(lost("expired", 500).verdict(), {});
    assert.deepEqual(lost("expired", 200).verdict(), { S4: 1 });
  });

  void test("unless it was wanted, or the engine was disturbed", () => {
    assert.deepEqual(lost("evicted", 200).verdict(), {});
    assert.deepEqual(lost("session", 200).disturbed(150, 160).verdict(), {});
  });
});

void describe("L1 and L5", () => {
  void test("a free place that does not pass on", () => {
    const told = (servedMs: number): Story =>
      story().holds("a", [10, 500]).asks("b", 20).releases("a", 30).tell("b", servedMs, grantOf("b"));
    assert.deepEqual(told(900).releases("b", 5_000).verdict(), {});
    assert.deepEqual(told(1_100).releases("b", 5_000).verdict(), { L1: 1 });
  });

  void test("a disturbance stops the watch", () => {
    const told = story().holds("a", [10, 500]).asks("b", 20).releases("a", 30).tell("b", 1_900, grantOf("b"));
    assert.deepEqual(told.disturbed(900, 1_000).releases("b", 5_000).verdict(), {});
  });

  void test("a lost permit shows although others pass on", () => {
    const told = story().asks("w", 15, { mode: "shared", limit: 2 });
    for (let turn = 0; turn < 9; turn++)
      told
        .holds("a", [10 + 200 * turn, 5_000], { limit: 2, id: `a${turn}` })
        .releases("a", 205 + 200 * turn, undefined, `a${turn}`);
    told.tell("w", 2_000, grantOf("w")).releases("w", 2_010);
    assert.deepEqual(told.verdict(), { L1: 1 });
  });

  void test("readers that pass on make no hole, one that waits beside them does", () => {
    const told = story();
    const shared = true;
    for (let turn = 0; turn < 20; turn++) {
      const id = `a${turn}`;
      told
        .holds("a", [10 + 100 * turn, 9_000], { shared, ask: 5 + 100 * turn, id })
        .releases("a", 108 + 100 * turn, undefined, id);
      const other = `b${turn}`;
      told.holds("b", [60 + 100 * turn, 9_000], { shared, ask: 9 + 100 * turn, id: other });
      told.releases("b", 108 + 100 * turn, undefined, other);
    }
    assert.deepEqual(told.verdict(), {});
    told.asks("w", 300, { mode: "shared", limit: null }).tell("w", 1_509, grantOf("w", 1_509)).releases("w", 1_510);
    assert.deepEqual(told.verdict(), { L1: 1 });
  });

  void test("who is stopped does not wait", () => {
    const told = story().holds("a", [10, 500]).asks("b", 20).releases("a", 30);
    told.tell("judge", 40, { kind: "stopped", victim: "b" }).tell("judge", 4_000, { kind: "resumed", victim: "b" });
    assert.deepEqual(told.tell("b", 4_500, grantOf("b")).releases("b", 5_000).verdict(), {});
  });

  void test("a request without an answer, a release that does not come back", () => {
    assert.deepEqual(story().holds("a", [10, 500]).asks("b", 20).releases("a", 400).until(600).verdict(), { L5: 1 });
    const told = story().holds("a", [10, 500]).tell("a", 20, { kind: "releasing", id: "a" }).until(600);
    assert.deepEqual(told.verdict(), { L5: 1 });
  });

  void test("a killed process owes no answer", () => {
    const told = story().holds("a", [10, 500]).asks("b", 20).releases("a", 400);
    assert.deepEqual(told.tell("judge", 450, { kind: "killed", victim: "b" }).until(600).verdict(), {});
  });
});

void describe("order", () => {
  const three = (first: string, second: string): Story =>
    story()
      .holds("a", [10, 500])
      .asks("b", 20)
      .tell("b", 25, { kind: "queued", id: "b" })
      .asks("c", 30)
      .releases("a", 40)
      .tell(first, 50, grantOf(first, 51))
      .releases(first, 60)
      .tell(second, 70, grantOf(second, 71))
      .releases(second, 80);

  void test("first come, first served", () => {
    assert.deepEqual(three("b", "c").verdict(), {});
    assert.deepEqual(three("c", "b").verdict(), { order: 1 });
  });
});

function grantOf(id: string, token = 999_999): { kind: "granted"; id: string; token: string; untilMs: number } {
  return { kind: "granted", id, token: String(token), untilMs: 99_999 };
}
