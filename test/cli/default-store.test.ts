/** The store that nobody has named, where its directory is missing or cannot be made. */
import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder, holdfast } from "./command-line.ts";

function run(stateHome: string) {
  const env = { XDG_STATE_HOME: stateHome, HOLDFAST_URL: undefined };
  return holdfast(["run", "a", "--", "true"], { env }).finished;
}

test("the directory of the default store is made, with its parents, for this user alone", async () => {
  const { path } = await folder("default-store");
  assert.equal((await run(join(path, "not", "there"))).code, 0);
  for (const made of ["not", "not/there", "not/there/holdfast"]) {
    assert.equal(statSync(join(path, made)).mode & 0o777, 0o700, made);
  }
});

test("no word of what this version of Node calls an experiment", async () => {
  const { path } = await folder("default-store");
  const flags = Number(process.versions.node.split(".")[0]) < 23 ? "--experimental-strip-types" : "";
  const env = { XDG_STATE_HOME: path, HOLDFAST_URL: undefined, NODE_OPTIONS: flags };
  const { code, stderr } = await holdfast(["run", "a", "--", "true"], { env }).finished;
  assert.equal(code, 0);
  assert.doesNotMatch(stderr, /SQLite/);
});

test("a default store that cannot be made: exit 78, and what to do about it", async () => {
  const { path } = await folder("default-store");
  const file = join(path, "file");
  writeFileSync(file, "");
  // In /proc nobody can make a directory, not even root.
  for (const stateHome of [file, ...(process.platform === "linux" ? ["/proc/state"] : [])]) {
    const { code, stderr } = await run(stateHome);
    assert.equal(code, 78, stderr);
    assert.match(
      stderr,
      /^holdfast: the directory of the default store, .* cannot be made \(E[A-Z]+\): set XDG_STATE_HOME, or say with --url/,
    );
  }
});
