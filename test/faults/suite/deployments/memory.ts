/** The memory engine: clients are stand-ins in one process, faults are made between the locks and the store. */
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../../../src/engine/clock.ts";
import { LeaseEngine } from "../../../../src/engine/lease-engine.ts";
import { MemorySpace } from "../../../../src/engines/memory/space.ts";
import { MemoryStore } from "../../../../src/engines/memory/store.ts";
import { Faults, FaultyStore } from "../../../../src/testing/faulty-store.ts";
import type { Alteration } from "../../../conformance/subjects/memory.ts";
import type { Deployment, FaultKind } from "../deployment.ts";

/** With an `alteration` it is another engine: a wrong one, that the suite has to notice. */
export async function memoryDeployment({ store, engine }: Alteration = {}): Promise<Deployment> {
  const space = new MemorySpace();
  const faults = new Faults();
  const during = (name: string, begin: () => void, end: () => void): FaultKind => ({
    name,
    async run(forMs) {
      begin();
      await sleep(forMs);
      end();
    },
  });
  return {
    engine: "memory",
    what: "one process, clients in it",
    traits: new MemoryStore(space, systemClock).traits,
    open: (clock) => {
      const own = new FaultyStore(new MemoryStore(space, clock), faults, clock);
      const made = new LeaseEngine(store?.(own) ?? own, clock);
      return engine?.(made) ?? made;
    },
    ttlMs: 1_000,
    roundingMs: 0,
    faults: [
      during(
        "engines frozen",
        () => faults.freeze(),
        () => faults.thaw(),
      ),
      { name: "connections reset", run: async () => faults.cut() },
      during(
        "replies lost",
        () => (faults.repliesLost = true),
        () => (faults.repliesLost = false),
      ),
      during(
        "bells lost",
        () => (faults.bellsDropped = true),
        () => (faults.bellsDropped = false),
      ),
    ],
    serving: async () => {},
    leftovers: async () => {
      const left: string[] = [];
      const look = new MemoryStore(space, systemClock);
      for await (const name of look.names("")) left.push(`a queue of ${JSON.stringify(name)}`);
      return left;
    },
    remains: async () => [],
    stop: async () => {},
  };
}
