/** The lock file itself: where it may be, who may read it, what is refused, and what names it can hold. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { extname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { refuseNetworkFileSystem } from "../../../src/engines/sqlite/file-system.ts";
import { fromUrl, sqlite } from "../../../src/engines/sqlite/index.ts";
import { ConfigError, connect, LockLostError } from "../../../src/index.ts";
import { startProcess, temporaryFolder } from "./workers.ts";

async function refusal(engine: string | ReturnType<typeof sqlite>): Promise<string> {
  try {
    const locks = await connect(engine);
    await locks.close();
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.message;
  }
  throw new assert.AssertionError({ message: "it was not refused" });
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

test("everything that is made is private: files 0600, the folder of the presences 0700", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const locks = await connect(`sqlite:${path}`);
  const lock = await locks.acquire("x");
  assert.deepEqual(
    ["", "-wal", "-shm"].map((suffix) => modeOf(path + suffix)),
    ["600", "600", "600"],
  );
  assert.equal(modeOf(`${path}-presence`), "700");
  const presences = readdirSync(`${path}-presence`);
  assert.deepEqual(presences.map((name) => extname(name)).sort(), [".alive", ".bell"]);
  for (const name of presences.filter((each) => each.endsWith(".alive"))) {
    assert.equal(modeOf(join(`${path}-presence`, name)), "600");
  }
  await lock.release();
  await locks.close();
  assert.deepEqual(readdirSync(`${path}-presence`), []);
});

test("permissions that somebody has given to the lock file are kept, and go for what lies beside it", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  writeFileSync(path, "");
  chmodSync(path, 0o660);
  const locks = await connect(`sqlite:${path}`);
  assert.deepEqual([modeOf(path), modeOf(`${path}-wal`), modeOf(`${path}-presence`)], ["660", "660", "770"]);
  const presences = readdirSync(`${path}-presence`).filter((each) => each.endsWith(".alive"));
  assert.deepEqual(
    presences.map((name) => modeOf(join(`${path}-presence`, name))),
    ["660"],
  );
  await locks.close();
});

test("a missing folder, a folder as the file and a file as the folder are refused with what to do", async (t) => {
  const folder = temporaryFolder(t);
  assert.match(await refusal(sqlite({ path: join(folder, "away", "locks.db") })), /does not exist: make it/);
  assert.match(await refusal(sqlite({ path: folder })), /give the path of a lock file/);
  writeFileSync(join(folder, "file"), "");
  assert.match(await refusal(sqlite({ path: join(folder, "file", "locks.db") })), /is not a directory/);
});

test("a file that is no database, or a damaged one, is refused and left as it was", async (t) => {
  const folder = temporaryFolder(t);
  const text = "a".repeat(10_000);
  writeFileSync(join(folder, "text"), text);
  assert.match(await refusal(sqlite({ path: join(folder, "text") })), /is not a lock file, or it is damaged/);
  assert.equal(readFileSync(join(folder, "text"), "utf8"), text);

  const path = join(folder, "locks.db");
  await (await connect(`sqlite:${path}`)).close();
  const damaged = Buffer.from(readFileSync(path));
  damaged.fill(0xaa, 100, damaged.length);
  writeFileSync(path, damaged);
  assert.match(await refusal(sqlite({ path })), /is not a lock file, or it is damaged/);
});

test("a file in which a table is damaged says so at the first lock", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  await (await connect(`sqlite:${path}`)).close();
  const pageBytes = 1024;
  const database = new DatabaseSync(path);
  const root = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'request'").get()?.["rootpage"];
  database.close();
  const damaged = Buffer.from(readFileSync(path));
  const from = (Number(root) - 1) * pageBytes;
  damaged.fill(0xaa, from, from + pageBytes);
  writeFileSync(path, damaged);
  assert.match(await refusal(sqlite({ path })), /is not a lock file, or it is damaged/);
});

test("a database of another application is refused and left as it was", async (t) => {
  const folder = temporaryFolder(t);
  for (const [name, sql] of [
    ["marked", "PRAGMA application_id = 1234"],
    ["unmarked", "CREATE TABLE invoice (id INTEGER)"],
    ["versioned", "PRAGMA user_version = 3"],
  ] as const) {
    const path = join(folder, name);
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
    const before = readFileSync(path);
    assert.match(await refusal(sqlite({ path })), /database of another application/);
    assert.deepEqual(readFileSync(path), before);
    assert.deepEqual(
      readdirSync(folder).filter((each) => each.startsWith(`${name}-`)),
      [],
    );
  }
});

test("a file of a newer version is refused with what to do", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  await (await connect(`sqlite:${path}`)).close();
  const database = new DatabaseSync(path);
  database.exec("PRAGMA user_version = 99");
  database.close();
  assert.match(await refusal(sqlite({ path })), /has version 99.*use one version of Holdfast/);
});

test("a file or folder that cannot be written is refused with what to do", async (t) => {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const path = join(folder, "locks.db");
  await (await connect(`sqlite:${path}`)).close();
  chmodSync(path, 0o444);
  chmodSync(folder, 0o555);
  // Root may write everywhere, so another user tries.
  const program = [
    `const { connect } = await import(${JSON.stringify(join(import.meta.dirname, "../../../src/index.ts"))});`,
    "for (const path of process.argv.slice(1)) {",
    "  await connect(`sqlite:${path}`).then(() => console.log('connected'), (e) => console.log(e.code, e.message));",
    "}",
  ].join("\n");
  const asNobody = process.getuid?.() === 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : ["env"];
  const run = spawnSync(
    asNobody[0] ?? "env",
    [...asNobody.slice(1), process.execPath, "--input-type=module", "-e", program, path, join(folder, "new.db")],
    { encoding: "utf8" },
  );
  chmodSync(folder, 0o755);
  const [existing = "", made = ""] = run.stdout.split("\n");
  assert.match(existing, /^CONFIG .*(cannot be written|cannot be opened)/, run.stdout + run.stderr);
  assert.match(made, /^CONFIG no lock file can be made/, run.stdout + run.stderr);
});

test("network and shared file systems are refused where they can be recognised", () => {
  const facts = (type: number, mounts = ""): Parameters<typeof refuseNetworkFileSystem>[1] => ({
    type: () => type,
    mounts: () => mounts,
  });
  const mounts = [
    "22 1 8:1 / / rw - ext4 /dev/root rw",
    "30 22 0:40 / /mnt/far\\040away rw - fuse.sshfs host: rw",
    "31 22 0:41 / /mnt/over rw - fuse.fuse-overlayfs over rw",
  ].join("\n");
  for (const [type, folder, kind] of [
    [0x6969, "/srv", "NFS"],
    [0xff534d42, "/srv", "CIFS"],
    [0xfe534d42, "/srv", "SMB"],
    [0x01021997, "/srv", "9p"],
    [0x65735546, "/mnt/far away/locks", "fuse.sshfs"],
  ] as const) {
    assert.throws(() => refuseNetworkFileSystem(folder, facts(type, mounts)), {
      name: "ConfigError",
      message: new RegExp(`is on ${kind}, where file locks do not work`),
    });
  }
  refuseNetworkFileSystem("/srv", facts(0xef53));
  refuseNetworkFileSystem("/mnt/over/locks", facts(0x65735546, mounts));
});

test("URLs: relative and absolute, percent-decoded, without options", async (t) => {
  const folder = temporaryFolder(t);
  const locks = await connect(`sqlite:${folder}/a%20b%3F%23%25.db`);
  assert.ok(existsSync(join(folder, "a b?#%.db")));
  await locks.close();
  const slashes = await connect(`sqlite://${folder}/c.db`);
  assert.ok(existsSync(join(folder, "c.db")));
  await slashes.close();
  for (const [url, message] of [
    ["sqlite:", /needs the path/],
    ["sqlite:./locks.db?mode=memory", /no options/],
    ["sqlite:./locks.db#x", /no options/],
    ["sqlite://host/locks.db", /has no host/],
    ["sqlite:./100%.db", /percent/],
    ["sqlite:a%00b", /NUL/],
    ["sqlite::memory:", /memory:/],
  ] as const) {
    assert.throws(() => fromUrl(url), { name: "ConfigError", message }, url);
  }
});

test("a path is a path: nothing in it is read as an option of SQLite", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "file:x?mode=memory&cache=shared");
  const locks = await connect(sqlite({ path }));
  await (await locks.acquire("x")).release();
  await locks.close();
  assert.ok(statSync(path).size > 0);
});

test("a lock file behind a symbolic link, and one at the end of a very long path", async (t) => {
  const folder = temporaryFolder(t);
  const deep = join(folder, ...Array.from({ length: 5 }, (_, index) => `${index}-${"long".repeat(20)}`));
  mkdirSync(deep, { recursive: true });
  symlinkSync(deep, join(folder, "link"));
  const holder = startProcess(t);
  const waiter = startProcess(t);
  await holder.connect(join(folder, "link", "locks.db"));
  await waiter.connect(join(deep, "locks.db"));
  await holder.acquire("x", { ttlMs: 60_000 });
  const granted = waiter.acquire("x", { ttlMs: 60_000 });
  await sleep(200);
  const releasedAtMs = await holder.release("x");
  const { atMs } = await granted;
  assert.ok(atMs - releasedAtMs < 1_000, `granted after ${atMs - releasedAtMs} ms`);
});

test("incident 34: no name is another's prefix, path or pattern; each is its own lock", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const locks = await connect(`sqlite:${path}`);
  const names = [
    "a",
    "a/",
    "a/b",
    "A",
    "a ",
    " a",
    "a\0",
    "a\0b",
    "á",
    "a\u0301",
    "%",
    "_",
    "a%",
    "..",
    "../a",
    "'; DROP TABLE request; --",
    '"',
    "\u{10ffff}",
    "\u{ffff}",
    "x".repeat(512),
    "*",
    "a\n",
  ];
  const held = await Promise.all(names.map((name) => locks.tryAcquire(name)));
  assert.ok(held.every((lock) => lock !== null));
  const { held: listed } = await locks.query();
  assert.deepEqual(listed.map((each) => each.name).sort(), [...names].sort());
  const { held: below } = await locks.query({ prefix: "a/" });
  assert.deepEqual(below.map((each) => each.name).sort(), ["a/", "a/b"]);
  const { held: pattern } = await locks.query({ prefix: "%" });
  assert.deepEqual(
    pattern.map((each) => each.name),
    ["%"],
  );
  for (const lock of held) await lock?.release();
  assert.deepEqual(await locks.query(), { held: [], pending: [] });
  await locks.close();
});

test("incident 47: many processes make the file at once, and all get in", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const workers = Array.from({ length: 6 }, () => startProcess(t));
  // Started first, so that they meet.
  await Promise.all(workers.map((worker) => worker.state("x")));
  await Promise.all(workers.map((worker) => worker.connect(path)));
  for (const worker of workers) {
    await worker.acquire("x");
    await worker.release("x");
  }
});

test("a lock file that is removed while it is used: the hold is lost, the next request uses the new file", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "locks.db");
  const locks = await connect(`sqlite:${path}`, { ttlMs: 3_000 });
  const lock = await locks.acquire("x");
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  await new Promise<void>((resolve) => {
    const alive = setInterval(() => {}, 1_000);
    lock.signal.addEventListener("abort", () => {
      clearInterval(alive);
      resolve();
    });
  });
  assert.ok(lock.signal.reason instanceof LockLostError);
  const next = await locks.acquire("x");
  assert.ok(next.token > lock.token);
  assert.ok(existsSync(path));
  await next.release();
  await locks.close();
});

test("incident 57: an older copy of the file that is put back gives no token twice", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "locks.db");
  const locks = await connect(`sqlite:${path}`);
  await locks.close();
  copyFileSync(path, join(folder, "backup"));
  const busy = await connect(`sqlite:${path}`);
  let last = 0n;
  for (let turn = 0; turn < 100; turn++) {
    const lock = await busy.acquire("x");
    last = lock.token;
    await lock.release();
  }
  await busy.close();
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
  copyFileSync(join(folder, "backup"), path);
  const restored = await connect(`sqlite:${path}`);
  const lock = await restored.acquire("x");
  assert.ok(lock.token > last, `${lock.token} after ${last}`);
  await lock.release();
  await restored.close();
});

test("a copy of a presence file, or a missing one, proves nothing: the lease decides", async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, "locks.db");
  const holder = startProcess(t);
  await holder.connect(path);
  await holder.acquire("x", { ttlMs: 60_000 });
  const other = await connect(`sqlite:${path}`);
  const [presence = ""] = readdirSync(`${path}-presence`).filter((name) => name.endsWith(".alive"));
  const file = join(`${path}-presence`, presence);
  // Copied over: the same name, but another file, which nobody has locked.
  cpSync(`${path}-presence`, join(folder, "copy"), { recursive: true, filter: (name) => !name.endsWith(".bell") });
  rmSync(file);
  assert.equal(await other.tryAcquire("x"), null);
  cpSync(join(folder, "copy", presence), file);
  assert.equal(await other.tryAcquire("x"), null);
  rmSync(`${path}-presence`, { recursive: true });
  assert.equal(await other.tryAcquire("x"), null);
  assert.equal((await holder.state("x"))?.isHeld, true);
  await other.close();
  // The folder is made again by the next one.
  const next = await connect(`sqlite:${path}`);
  assert.equal(await next.tryAcquire("x"), null);
  await next.close();
});

test("what those left behind who died before they were registered is swept away", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  await (await connect(`sqlite:${path}`)).close();
  appendFileSync(join(`${path}-presence`, "nobody.alive"), "");
  appendFileSync(join(`${path}-presence`, "nobody.bell"), "");
  const dead = startProcess(t);
  await dead.connect(path);
  await dead.kill();
  const next = await connect(`sqlite:${path}`);
  assert.equal(readdirSync(`${path}-presence`).length, 2);
  await next.close();
  assert.deepEqual(readdirSync(`${path}-presence`), []);
});

for (const removed of [["-wal"], ["-shm"], ["-wal", "-shm"]]) {
  test(`${removed.join(" and ")} removed while in use: noticed by the next renewal but one, nobody is held beside another`, async (t) => {
    const path = join(temporaryFolder(t), "locks.db");
    const locks = await connect(`sqlite:${path}`, { ttlMs: 3_000 });
    t.after(() => locks.close());
    const lock = await locks.acquire("x");
    for (const suffix of removed) rmSync(path + suffix);
    const worker = startProcess(t);
    await sleep(2_500);
    await worker.connect(path);
    const theirs = await worker.tryAcquire("x");
    assert.notEqual(theirs !== null, lock.isHeld(), "exactly one of the two holds it");
    await lock.release();
    if (theirs !== null) await worker.release("x");
    await (await locks.acquire("x", { waitMs: 10_000 })).release();
  });
}
