import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, startProcess, temporaryDirectory } from "../../servers/server-process.ts";

const ECHO = "require('net').createServer((c) => c.pipe(c)).listen(+process.argv[1], '127.0.0.1')";

test("a process is started, frozen, thawed, restarted and stopped", async () => {
  const port = await freePort();
  const server = await startProcess({
    name: "echo",
    command: process.execPath,
    args: ["-e", ECHO, String(port)],
    ready: () => answers(port, 500),
  });
  try {
    const first = server.pid;
    server.freeze();
    assert.equal(await answers(port, 300), false);
    server.thaw();
    assert.equal(await answers(port, 5_000), true);
    let betweenRan = false;
    await server.restart(() => void (betweenRan = true));
    assert.ok(betweenRan);
    assert.notEqual(server.pid, first);
    assert.equal(await answers(port, 5_000), true);
  } finally {
    await server.stop();
  }
  assert.equal(server.running, false);
  assert.equal(await answers(port, 300), false);
});

const SYNCING = `const { Worker } = require("node:worker_threads");
for (let n = 0; n < 8; n++) new Worker(\`const { openSync, writeSync, fsyncSync } = require("node:fs");
const file = openSync(process.argv[2] + "/" + require("node:worker_threads").threadId, "w");
for (;;) { writeSync(file, "x"); fsyncSync(file); }\`, { eval: true, argv: [process.argv[1]] });`;

test(
  "frozen means that every thread has stopped, also one in the middle of a write",
  { skip: process.platform !== "linux" },
  async () => {
    const directory = await temporaryDirectory("freeze");
    const server = await startProcess({
      name: "syncing",
      command: process.execPath,
      args: ["-e", SYNCING, directory.path],
      ready: async () => readdirSync(directory.path).length === 8,
    });
    try {
      for (let n = 0; n < 20; n++) {
        server.freeze();
        assert.deepEqual(running(server.pid), []);
        server.thaw();
        await sleep(5);
      }
    } finally {
      await server.stop();
      await directory.remove();
    }
  },
);

/** The states of the threads that have not stopped. */
function running(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`)
    .map((task) => /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/task/${task}/status`, "utf8"))?.[1] ?? "")
    .filter((state) => state !== "T" && state !== "t");
}

test("a process that does not come up is reported with its output", async () => {
  await assert.rejects(
    startProcess({
      name: "broken",
      command: process.execPath,
      args: ["-e", "console.error('no luck'); process.exit(3)"],
      ready: () => Promise.resolve(false),
    }),
    /broken ended before it was ready[^]*no luck/,
  );
  await assert.rejects(
    startProcess({ name: "nowhere", command: "/nonexistent", args: [], ready: () => Promise.resolve(false) }),
    /nowhere ended before it was ready/,
  );
});

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  test(`servers end with the program that started them (${signal})`, async () => {
    const module = new URL("../../servers/server-process.ts", import.meta.url).href;
    const program = spawn(process.execPath, ["--input-type=module", "-e", starter(module)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const started = await new Promise<{ pid: number; path: string }>((resolve) => {
      program.stdout.setEncoding("utf8").once("data", (text: string) => resolve(JSON.parse(text)));
    });
    program.kill(signal);
    for (let n = 0; n < 250 && runs(started.pid); n++) await sleep(20);
    assert.equal(runs(started.pid), false);
    if (signal === "SIGTERM") assert.equal(existsSync(started.path), false);
    rmSync(started.path, { recursive: true, force: true });
  });
}

test("a temporary directory is removed", async () => {
  const directory = await temporaryDirectory("example");
  assert.ok(existsSync(directory.path));
  await directory.remove();
  assert.equal(existsSync(directory.path), false);
});

function starter(module: string): string {
  return `
    import { startProcess, temporaryDirectory } from ${JSON.stringify(module)};
    const { path } = await temporaryDirectory("orphan");
    const server = await startProcess({ name: "sleep", command: "/bin/sleep", args: ["600"], ready: async () => true });
    console.log(JSON.stringify({ pid: server.pid, path }));
    setInterval(() => {}, 1000);
  `;
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function answers(port: number, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("x"));
    const end = (answer: boolean): void => (socket.destroy(), resolve(answer));
    socket
      .once("data", () => end(true))
      .once("error", () => end(false))
      .setTimeout(withinMs, () => end(false));
  });
}
