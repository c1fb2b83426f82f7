/** The memory engine under test. It has no server, so its faults are made between the locks and the store. */
import { systemClock, type Clock } from "../../../src/engine/clock.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import { LeaseEngine } from "../../../src/engine/lease-engine.ts";
import type { LeaseStore } from "../../../src/engine/lease-store.ts";
import { MemorySpace } from "../../../src/engines/memory/space.ts";
import { MemoryStore } from "../../../src/engines/memory/store.ts";
import { connect, type LeaseOptions, type LockManager } from "../../../src/index.ts";
import { Faults, FaultyStore } from "../../../src/testing/faulty-store.ts";
import type { Subject } from "../../../src/testing/subject.ts";

/** What makes another engine of it: see wrong-engines.ts. */
export interface Alteration {
  readonly store?: (store: LeaseStore) => LeaseStore;
  readonly engine?: (engine: Engine) => Engine;
}

/** A space of its own, with its faults. */
export function memorySubject({ store = (own) => own, engine = (own) => own }: Alteration = {}): Subject {
  const space = new MemorySpace();
  const faults = new Faults();
  const open = (clock: Clock, defaults?: LeaseOptions): Promise<LockManager> => {
    const altered = store(new FaultyStore(new MemoryStore(space, clock), faults, clock));
    return connect(engine(new LeaseEngine(altered, clock)), defaults);
  };
  return {
    name: "memory",
    traits: new MemoryStore(space, systemClock).traits,
    connect: (defaults) => open(systemClock, defaults),
    url: () => "memory:",
    hooks: {
      connectWithClock: open,
      freezeServer: async () => faults.freeze(),
      thawServer: async () => faults.thaw(),
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
      connectNowhere: "there is no server that could be away",
      loseSession: "its leases are its own, not a session's",
      restartServer: "it ends with its process",
      killServer: "it has no server",
    },
  };
}

export const subjects: readonly Subject[] = [memorySubject()];
