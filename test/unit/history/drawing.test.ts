/** What a person sees of a broken promise. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkHistory } from "../../../src/testing/history/index.ts";
import { Story } from "./story.ts";

void test("a violation is drawn as a time line", () => {
  const told = new Story().disturbed(12, 22).tell("judge", 30, { kind: "stopped", victim: "a" });
  told.holds("a", [10, 60], { ask: 0, token: 17 }).holds("b", [40, 90], { token: 18, ask: 5 });
  told.writes("b", 50, "w1", true).tell("judge", 70, { kind: "resumed", victim: "a" });
  told.writes("a", 72, "w2", false).releases("a", 75).releases("b", 80).asks("c", 45).tell("c", 82, {
    kind: "refused",
    id: "c",
    why: "timeout",
  });
  const { violations, draw } = checkHistory(told.history);
  assert.deepEqual(
    violations.map(({ promise }) => promise),
    ["S1"],
  );
  const [violation] = violations;
  assert.ok(violation !== undefined);
  const expected = `
S1: two inside "n" for 20.0 ms: a's exclusive lock with token 17 and b's exclusive lock with token 18
         -7.5 ms                                                          97.5 ms
a #17         .......[=================================D       x
b #18            ........................[======W===================R
c                                            .........................x
fault                 !!!!!!!!                                                    something
stopped                           zzzzzzzzzzzzzzzzzzzzzzzzzzzz                    a
. waits   [ granted   = relies on it   R releases   D deadline   L lost   K killed   W write   x refused
        0.0 ms  a #17 asks
       10.0 ms  a #17 is granted
       60.0 ms  a #17 its deadline, as last seen
       72.0 ms  a #17 writes to "r": refused
       75.0 ms  a #17 releases
       75.0 ms  a #17 is released
        5.0 ms  b #18 asks
       40.0 ms  b #18 is granted
       50.0 ms  b #18 writes to "r": accepted
       80.0 ms  b #18 releases
       80.0 ms  b #18 is released
       90.0 ms  b #18 its deadline, as last seen`;
  assert.equal(`\n${draw(violation).replaceAll(/ +$/gm, "")}`, expected);
});
