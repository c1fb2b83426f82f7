/** `holdfast/testing`: a clock for your own tests, the conformance kit for engines, and histories with their checker. */
export { PROMISES, OPTIONS, SURFACE } from "./case.ts";
export type { Case, Covered, Needs, NeededTrait } from "./case.ts";
export { conformanceCases } from "./conformance.ts";
export { Faults, FaultyStore } from "./faulty-store.ts";
export * from "./history/index.ts";
export { ManualClock, type ManualClockOptions } from "./manual-clock.ts";
export { registerConformance, type ConformanceOptions } from "./node-test.ts";
export { AdjustableClock, PausableClock } from "./pausable-clock.ts";
export type { FaultHooks, HookName, Restore, Subject } from "./subject.ts";
