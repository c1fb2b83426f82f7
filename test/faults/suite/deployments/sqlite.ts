/** The SQLite engine: no server; others get in the way of the write lock. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { temporaryDirectory } from "../../../../servers/exit-cleanup.ts";
import { engineFor, type Deployment, type EngineSpec } from "../deployment.ts";

export async function sqliteDeployment(): Promise<Deployment> {
  const directory = await temporaryDirectory("faults");
  const path = join(directory.path, "locks.db");
  const spec: EngineSpec = { kind: "sqlite", options: { path } };
  const first = engineFor(spec);
  await first.open();
  await first.close();
  const other = new DatabaseSync(path, { timeout: 20 });
  const presences = (): string[] => readdirSync(`${path}-presence`);
  /** Everybody else wants the lock too: where it is not to be had meanwhile, nothing is disturbed. */
  const hold = async (forMs: number, how: string): Promise<void> => {
    for (const endMs = performance.now() + forMs; performance.now() < endMs; await sleep(5)) {
      try {
        other.exec(how);
      } catch (error) {
        if (other.isTransaction) other.exec("ROLLBACK");
        if (error instanceof Error && error.message.includes("locked")) continue;
        throw error;
      }
      await sleep(forMs);
      other.exec("ROLLBACK");
      return;
    }
  };
  return {
    engine: "sqlite",
    what: "one file",
    traits: first.traits,
    spec,
    ttlMs: 1_500,
    roundingMs: 0,
    faults: [
      { name: "write locks held by others", run: (forMs) => hold(forMs, "BEGIN IMMEDIATE") },
      {
        name: "long readers",
        run: (forMs) => hold(forMs, "BEGIN; SELECT count(*) FROM sqlite_schema"),
      },
      {
        name: "write locks taken again and again",
        async run(forMs) {
          for (const endMs = performance.now() + forMs; performance.now() < endMs;) await hold(8, "BEGIN IMMEDIATE");
        },
      },
    ],
    serving: async () => {},
    leftovers: async () => {
      const rows = other.prepare("SELECT count(*) AS n FROM request").get();
      return rows?.["n"] === 0 ? [] : [`${String(rows?.["n"])} rows of requests`];
    },
    remains: async () => presences().map((file) => `the presence file ${file}`),
    stop: async () => {
      other.close();
      await directory.remove();
    },
  };
}
