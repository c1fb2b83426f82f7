/** One case of the conformance kit, and what decides whether an engine runs it, refuses it, or cannot be asked. */
import type { Traits } from "../engine/engine.ts";
import type { AcquireOptions, RequestOptions } from "../index.ts";
import type { Stage } from "./stage.ts";
import type { HookName, Subject } from "./subject.ts";

/** The promises of the model. */
export const PROMISES = ["S1", "S2", "S3", "S4", "S5", "L1", "L2", "L3", "L4", "L5"] as const;

/** Every option of `request`, and so of `acquire`: adding one to the library without a case here does not compile. */
const OPTION_LIST: Record<keyof Required<RequestOptions & AcquireOptions>, true> = {
  ttlMs: true,
  minHoldMs: true,
  maxHoldMs: true,
  graceMs: true,
  mode: true,
  waitMs: true,
  signal: true,
  ifAvailable: true,
  steal: true,
};
export const OPTIONS = Object.keys(OPTION_LIST) as (keyof RequestOptions)[];

/** The other parts of the interface that users see. */
export const SURFACE = [
  "connect",
  "request",
  "handle",
  "loss",
  "query",
  "evict",
  "close",
  "names",
  "process",
  "mutex",
  "readWriteLock",
  "semaphore",
  "acquireAll",
  "election",
] as const;

export type Covered = (typeof PROMISES)[number] | keyof RequestOptions | (typeof SURFACE)[number];

/** A trait that a case needs. Engines without it have to refuse, or keep a weaker promise. */
export type NeededTrait = "shared" | "limits" | "steal" | "minHold" | "fair" | "lease" | "session" | "restart";

export interface Needs {
  readonly traits?: readonly NeededTrait[];
  readonly hooks?: readonly HookName[];
  /**
   * "sharing": other processes (or, for an engine of one process, stand-ins for them) use the same locks.
   * "alone": another process uses locks of its own.
   */
  readonly peers?: "sharing" | "alone";
}

export interface CaseDefinition {
  /** `promise/what-it-is-about`. */
  readonly id: `${Covered}/${string}`;
  readonly title: string;
  /** The public incidents that this case is proof against: numbers of docs/incidents.md. */
  readonly incidents?: readonly number[];
  readonly needs: Needs;
  readonly body: (stage: Stage) => Promise<void>;
  /** What engines without a needed trait are asked instead: that they refuse with the right error. */
  readonly otherwise?: { readonly title: string; readonly body: (stage: Stage) => Promise<void> };
}

/** A case for one engine, ready to run in any test runner. */
export interface Case {
  readonly id: string;
  readonly promise: Covered;
  readonly title: string;
  /** Numbers of docs/incidents.md. Empty unless the case itself runs. */
  readonly incidents: readonly number[];
  readonly needs: Needs;
  /** "runs": the promise itself. "refuses": the engine does not offer it, and has to say so. Or why neither. */
  readonly status: "runs" | "refuses" | `not applicable: ${string}`;
  /** It disturbs the whole engine: no other case of this subject may run at the same time. */
  readonly alone: boolean;
  /** Rejects with an assertion error when the promise is broken. Does nothing where not applicable. */
  run(): Promise<void>;
}

const HAS: Record<NeededTrait, (traits: Traits) => boolean> = {
  shared: (traits) => traits.shared,
  limits: (traits) => traits.limits,
  steal: (traits) => traits.steal,
  minHold: (traits) => traits.minHold,
  fair: (traits) => traits.fair,
  lease: (traits) => traits.lease === "lease",
  session: (traits) => traits.lease === "session",
  restart: (traits) => traits.survivesRestart,
};

export function lacking(traits: Traits, needs: Needs): NeededTrait | undefined {
  return needs.traits?.find((trait) => !HAS[trait](traits));
}

/** Faults that touch only the manager they are asked for; all others disturb everybody. */
const PRIVATE_HOOKS = new Set<HookName>(["connectWithClock", "connectNowhere", "loseSession"]);

export function disturbs(needs: Needs): boolean {
  return needs.hooks?.some((hook) => !PRIVATE_HOOKS.has(hook)) ?? false;
}

/** What is missing in `subject` for a case with these needs; nothing when it can run. */
export function missing(subject: Subject, needs: Needs): string | undefined {
  const hook = needs.hooks?.find((name) => subject.hooks?.[name] === undefined);
  if (hook !== undefined) return because(subject, hook);
  if (needs.peers === undefined) return undefined;
  if (needs.peers === "sharing" && subject.traits.scope === "process") {
    return subject.hooks?.connectWithClock === undefined ? because(subject, "connectWithClock") : undefined;
  }
  return subject.url === undefined ? "url missing" : undefined;
}

function because(subject: Subject, hook: HookName): string {
  const why = subject.whyNot?.[hook];
  return `hook ${hook} missing${why === undefined ? "" : ` (${why})`}`;
}
