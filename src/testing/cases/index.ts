/** All cases, in the order of the model. */
import type { CaseDefinition } from "../case.ts";
import { EXCLUSION } from "./exclusion.ts";
import { HANDLE } from "./handle.ts";
import { LEASE_OPTIONS } from "./lease-options.ts";
import { LIVENESS } from "./liveness.ts";
import { LOSS } from "./loss.ts";
import { MANAGER } from "./manager.ts";
import { OWNERSHIP } from "./ownership.ts";
import { PROCESS } from "./process.ts";
import { REQUEST_OPTIONS } from "./request-options.ts";
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
];
