/** The SQLite engine beside bare transactions of node:sqlite and beside proper-lockfile. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import lockfile from "proper-lockfile";
import { connect } from "../../src/index.ts";
import { type Contender, loop, type Work } from "../harness.ts";
import { betweenProcesses, crowd } from "./processes/crowd.ts";
import type { Locker } from "./processes/sqlite-contender.ts";

const CONTENDER = join(import.meta.dirname, "processes/sqlite-contender.ts");
const PROCESSES = 8;
const WARM_UP_MS = 8_000;

function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** What the file system and SQLite cost at least: one row added in a transaction, and removed in another. */
function bare(workers: number): Contender {
  return {
    name: "two bare transactions",
    kind: "limit",
    async start() {
      const folder = temporaryFolder();
      const database = new DatabaseSync(join(folder.path, "bare.db"));
      database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
      database.exec("CREATE TABLE lock (name TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID");
      const begin = database.prepare("BEGIN IMMEDIATE");
      const commit = database.prepare("COMMIT");
      const add = database.prepare("INSERT INTO lock VALUES (?, ?)");
      const remove = database.prepare("DELETE FROM lock WHERE name = ? AND owner = ?");
      const lock = async (name: string): Promise<void> => {
        begin.run();
        add.run(name, "owner");
        commit.run();
      };
      const unlock = async (name: string): Promise<void> => {
        begin.run();
        remove.run(name, "owner");
        commit.run();
      };
      return {
        run: (ms) =>
          loop(ms, workers, async (worker) => {
            await lock(`name ${worker}`);
            await unlock(`name ${worker}`);
          }),
        async stop() {
          database.close();
          folder.remove();
        },
      };
    },
  };
}

function ours(workers: number): Contender {
  return {
    name: "holdfast sqlite:",
    kind: "ours",
    async start() {
      const folder = temporaryFolder();
      const locks = await connect(`sqlite:${join(folder.path, "locks.db")}`);
      return {
        run: (ms) =>
          loop(ms, workers, async (worker) => {
            const lock = await locks.acquire(`name ${worker}`);
            await lock.release();
          }),
        async stop() {
          await locks.close();
          folder.remove();
        },
      };
    },
  };
}

function properLockfile(workers: number): Contender {
  return {
    name: "proper-lockfile",
    kind: "peer",
    async start() {
      const folder = temporaryFolder();
      const files = Array.from({ length: workers }, (_, worker) => join(folder.path, `name ${worker}`));
      for (const file of files) writeFileSync(file, "");
      return {
        run: (ms) =>
          loop(ms, workers, async (worker) => {
            const release = await lockfile.lock(files[worker] ?? "");
            await release();
          }),
        stop: async () => folder.remove(),
      };
    },
  };
}

function contending(name: string, kind: Contender["kind"], locker: Locker): Contender {
  return {
    name,
    kind,
    async start() {
      const folder = temporaryFolder();
      const running = await crowd(CONTENDER, [JSON.stringify(locker), folder.path], PROCESSES, betweenProcesses);
      // Eight processes share the work, so each is warm after eight times as long.
      await running.run(WARM_UP_MS);
      return {
        ...running,
        async stop() {
          await running.stop();
          folder.remove();
        },
      };
    },
  };
}

export async function works(): Promise<readonly Work[]> {
  return [
    {
      id: "sqlite-one",
      title: "SQLite, lock and unlock, one at a time",
      unit: "pairs a second",
      contenders: [bare(1), ours(1), properLockfile(1)],
      floors: [
        { than: "limit", atLeast: 0.6 },
        { than: "best peer", atLeast: 5 },
      ],
    },
    {
      id: "sqlite-64",
      title: "SQLite, 64 names in flight (ours shares transactions)",
      unit: "pairs a second",
      contenders: [bare(64), ours(64), properLockfile(64)],
      floors: [{ than: "best peer", atLeast: 5 }],
    },
    {
      id: "sqlite-processes",
      title: `SQLite, ${PROCESSES} processes contending for one name`,
      unit: "hand-offs from process to process a second",
      contenders: [
        contending("holdfast sqlite:", "ours", "holdfast"),
        contending("proper-lockfile, its own retry times", "peer", [1_000, 1_000]),
        contending("proper-lockfile, asking every 1 to 5 ms", "peer", [1, 5]),
      ],
      floors: [
        { than: "proper-lockfile, its own retry times", atLeast: 10 },
        { than: "best peer", atLeast: 1 },
      ],
    },
  ];
}
