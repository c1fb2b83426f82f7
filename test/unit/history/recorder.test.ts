/** The recorder: nothing told is lost by a kill, and processes of one machine share its clock. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "../../../src/index.ts";
import type { HistoryEvent } from "../../../src/testing/history/event.ts";
import {
  checkHistory,
  historyArray,
  historyFile,
  HistoryRecorder,
  readHistory,
} from "../../../src/testing/history/index.ts";

void test("SIGKILL loses nothing that was told; times of two processes compare", async () => {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-history-"));
  try {
    const [childFile, ownFile] = [join(directory, "child.jsonl"), join(directory, "own.jsonl")];
    const own = new HistoryRecorder("parent", historyFile(ownFile));
    own.request({ name: "before" }).refused("busy");
    const program = join(import.meta.dirname, "recording-process.ts");
    const child = spawn(process.execPath, [...process.execArgv, program, childFile], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    own.tell({ kind: "killed", victim: "child" });
    child.kill("SIGKILL");
    await once(child, "exit");
    own.close();
    const told = readHistory([childFile, ownFile]).map(({ process, kind }) => `${process} ${kind}`);
    assert.deepEqual(told, ["parent requested", "parent refused", "child requested", "child granted", "parent killed"]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

void test("records locks as they are, and they pass", async () => {
  const events: HistoryEvent[] = [];
  const recorder = new HistoryRecorder("p", historyArray(events));
  const locks = await connect("memory:");
  for (const mode of ["exclusive", "shared"] as const) {
    const request = recorder.request({ name: "n", mode });
    const lock = await locks.acquire("n", { mode });
    request.granted(lock);
    const write = request.writing("r");
    write.done(true);
    request.look(lock);
    request.releasing();
    await lock.release();
    request.released();
  }
  await locks.close();
  const report = checkHistory(events, { passesOnWithinMs: 1_000, complete: true });
  assert.deepEqual(
    { ...report, draw: undefined },
    { violations: [], excused: [], requests: 2, grants: 2, writes: 2, draw: undefined },
  );
});
