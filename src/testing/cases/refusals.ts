/** What an engine without a trait is asked instead: a clear refusal, before anything happens. */
import type { CaseDefinition } from "../case.ts";
import { neverThrows, rejectsWith } from "../expect.ts";
import type { LockManager } from "../../index.ts";

type Refusal = NonNullable<CaseDefinition["otherwise"]>;

function refusal(what: string, tries: (locks: LockManager, name: string) => (() => Promise<unknown>)[]): Refusal {
  return {
    title: `${what} is not offered: ConfigError, and nothing stays behind`,
    body: async (stage) => {
      const locks = await stage.connect();
      for (const attempt of tries(locks, stage.name)) await rejectsWith("CONFIG", neverThrows(attempt));
      await stage.gone(locks);
    },
  };
}

export const refusesShared: Refusal = refusal("shared mode", (locks, name) => [
  () => locks.acquire(name, { mode: "shared" }),
  () => locks.tryAcquire(name, { mode: "shared" }),
  () => locks.request(name, { mode: "shared" }, () => {}),
]);

export const refusesSteal: Refusal = refusal("steal", (locks, name) => [
  () => locks.request(name, { steal: true }, () => {}),
]);

export const refusesMinHold: Refusal = refusal("minHoldMs", (locks, name) => [
  () => locks.acquire(name, { minHoldMs: 100 }),
  () => locks.tryAcquire(name, { minHoldMs: 100 }),
  () => locks.request(name, { minHoldMs: 100 }, () => {}),
]);
