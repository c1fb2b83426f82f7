/** `holdfast run` on a store with a server, where the lease alone protects: the server is frozen, holdfast is killed. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RedisServer, startRedis } from "../../servers/redis.ts";
import { holdfast, lives, until, type Running } from "./command-line.ts";

let server: RedisServer;

before(async () => {
  server = await startRedis();
});

after(async () => {
  await server.stop();
});

function run(...words: readonly string[]): Running {
  return holdfast(["run", ...words], { env: { HOLDFAST_URL: server.url } });
}

const STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.05; done";

/** Says whether the process still runs; a zombie, which a stopped holdfast cannot collect, does not. */
function besideOrAlone(pid: number): string {
  return `case $(cut -d ' ' -f 3 /proc/${pid}/stat 2>/dev/null) in '' | Z) echo alone ;; *) echo beside ;; esac`;
}

test("incident 37: the server is frozen; COMMAND is stopped before the lease ends, exit code 70", async () => {
  const holder = run("frozen", "--ttl", "4s", "-k", "500ms", "-c", STUBBORN);
  const command = await holder.commandPid();
  const frozenAt = performance.now();
  server.freeze();
  await until(() => !lives(command), "COMMAND is gone", 10_000);
  // The last renewal was acknowledged before the server froze.
  assert(performance.now() - frozenAt < 4_000, "COMMAND outlived its lease");
  server.thaw();
  const { code, stderr } = await holder.finished;
  assert.equal(code, 70);
  assert.match(stderr, /^holdfast: lock "frozen" was lost: [^\n]*COMMAND was stopped\n$/);
});

test("incident 60: holdfast is killed; its command is gone long before the lease lets the next one in", async () => {
  const holder = run("killed", "--ttl", "6s", "-k", "500ms", "-c", STUBBORN);
  const command = await holder.commandPid();
  holder.child.kill("SIGKILL");
  const next = run("killed", "--ttl", "6s", "-c", besideOrAlone(command));
  assert.equal((await next.finished).stdout, "alone\n");
  assert(!lives(command));
});

test("incident 60: holdfast is stopped past its lease; the next one runs alone, the stopped one ends with 70", async () => {
  const holder = run("stopped", "--ttl", "4s", "-k", "500ms", "-c", STUBBORN);
  const command = await holder.commandPid();
  holder.child.kill("SIGSTOP");
  const next = run("stopped", "-c", besideOrAlone(command));
  assert.equal((await next.finished).stdout, "alone\n");
  holder.child.kill("SIGCONT");
  assert.equal((await holder.finished).code, 70);
});
