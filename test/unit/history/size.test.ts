/** Long histories are decided in a moment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryEvent } from "../../../src/testing/history/event.ts";
import { checkHistory } from "../../../src/testing/history/index.ts";
import { ValidWorld } from "./world.ts";

void test("a history of 200,000 events, one name after the other crowded", () => {
  const piece = new ValidWorld(7, 20_000).events.filter(({ kind }) => kind !== "applied");
  const spanMs = (piece.at(-1)?.atMs ?? 0) + 5_000;
  const events: HistoryEvent[] = [];
  for (let copy = 0; events.length < 200_000; copy++) {
    for (const event of piece) {
      const moved: Record<string, unknown> = { ...event, atMs: event.atMs + copy * spanMs };
      for (const key of ["id", "process", "victim", "write"])
        if (key in moved) moved[key] = `${copy}:${String(moved[key])}`;
      if (typeof moved["token"] === "string")
        moved["token"] = String(BigInt(moved["token"]) + BigInt(copy) * 1_000_000n);
      if (typeof moved["untilMs"] === "number") moved["untilMs"] += copy * spanMs;
      events.push(moved as unknown as HistoryEvent);
    }
  }
  const startMs = performance.now();
  const report = checkHistory(events, { passesOnWithinMs: 2_000, complete: true });
  assert.deepEqual(report.violations, []);
  assert.ok(report.grants > 25_000, `${report.grants} grants`);
  // Far more than it takes (about a second), far less than anything that compares all with all.
  assert.ok(performance.now() - startMs < 20_000);
});
