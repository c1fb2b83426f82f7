/** All cases, in the order of the model. */
import type { CaseDefinition } from "../case.ts";
import { ELECTION } from "./election.ts";
import { EXCLUSION } from "./exclusion.ts";
import { HANDLE } from "./handle.ts";
import { LEASE_OPTIONS } from "./lease-options.ts";
import { LIVENESS } from "./liveness.ts";
import { LOCK_SET } from "./lock-set.ts";
import { LOSS } from "./loss.ts";
import { MANAGER } from "./manager.ts";
import { MUTEX } from "./mutex.ts";
import { OWNERSHIP } from "./ownership.ts";
import { PROCESS } from "./process.ts";
import { READ_WRITE_LOCK } from "./read-write-lock.ts";
import { REQUEST_OPTIONS } from "./request-options.ts";
import { SEMAPHORE } from "./semaphore.ts";
import { SETTLING } from "./settling.ts";
import { TOKENS } from "./tokens.ts";
import { WEB_LOCKS } from "./web-locks.ts";

export const CASES: readonly CaseDefinition[] = [
  ...EXCLUSION,
  ...TOKENS,
  ...OWNERSHIP,
  ...LIVENESS,
  ...SETTLING,
  ...LEASE_OPTIONS,
  ...REQUEST_OPTIONS,
  ...WEB_LOCKS,
  ...HANDLE,
  ...LOSS,
  ...MANAGER,
  ...PROCESS,
  ...MUTEX,
  ...READ_WRITE_LOCK,
  ...SEMAPHORE,
  ...LOCK_SET,
  ...ELECTION,
];
