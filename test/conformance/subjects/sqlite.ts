/** The SQLite engine under test: real files, real processes. Only lost replies and bells are made in front of the store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock, type Clock } from "../../../src/engine/clock.ts";
import { LeaseEngine } from "../../../src/engine/lease-engine.ts";
import { bootId } from "../../../src/engines/sqlite/machine.ts";
import { SqliteStore } from "../../../src/engines/sqlite/store.ts";
import { connect, type LeaseOptions, type LockManager } from "../../../src/index.ts";
import { Faults, FaultyStore } from "../../../src/testing/faulty-store.ts";
import type { Subject } from "../../../src/testing/subject.ts";

/** A lock file of its own, with its faults. */
export function sqliteSubject(): Subject {
  const faults = new Faults();
  let folder = "";
  let freezer: DatabaseSync | undefined;
  const path = (): string => join(folder, "locks.db");
  const open = (clock: Clock, defaults?: LeaseOptions): Promise<LockManager> => {
    const store = new SqliteStore({ path: path(), clock, bootId: bootId(systemClock) });
    return connect(new LeaseEngine(new FaultyStore(store, faults, clock), clock), defaults);
  };
  return {
    name: "sqlite",
    traits: new SqliteStore({ path: "", clock: systemClock }).traits,
    async start() {
      folder = mkdtempSync(join(tmpdir(), "holdfast-sqlite-"));
    },
    async stop() {
      freezer?.close();
      rmSync(folder, { recursive: true, force: true });
    },
    connect: (defaults) => open(systemClock, defaults),
    url: () => `sqlite:${path()}`,
    hooks: {
      connectWithClock: open,
      /** As when another process is stopped inside its transaction. */
      async freezeServer() {
        freezer = new DatabaseSync(path(), { timeout: 5_000 });
        freezer.exec("BEGIN IMMEDIATE");
      },
      async thawServer() {
        freezer?.close();
        freezer = undefined;
      },
      cutConnections: async () => faults.cut(),
      dropBells: async () => {
        faults.bellsDropped = true;
        return async () => {
          faults.bellsDropped = false;
        };
      },
      loseReplies: async () => {
        faults.repliesLost = true;
        return async () => {
          faults.repliesLost = false;
        };
      },
      countCommands: async () => faults.commands,
    },
    whyNot: {
      connectNowhere: "a missing file is made, and a missing folder is a ConfigError",
      loseSession: "its leases are its own, not a session's",
      restartServer: "it has no server",
      killServer: "it has no server",
    },
  };
}

export const subjects: readonly Subject[] = [sqliteSubject()];
