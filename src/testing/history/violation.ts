/** A broken promise, with what a person needs in order to see it. */
import type { Operation } from "./operation.ts";

/** S1 … S4, L1 and L5 are the model's; "order" is first come, first served. */
export type Judged = "S1" | "S2" | "S3" | "S4" | "L1" | "L5" | "order";

export interface Violation {
  readonly promise: Judged;
  /** One sentence. */
  readonly text: string;
  /** Those concerned, the culprits first. */
  readonly operations: readonly Operation[];
  /** What the drawing has to show. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Set when a fault had broken an assumption under which exclusion is promised: then S1 may break. Which fault. */
  readonly excuse?: string | undefined;
}

/** `client-2's exclusive lock with token 17`. */
export function describe({ process, mode, limit, token }: Operation): string {
  const kind = mode === "exclusive" || limit === Infinity ? mode : `shared (at most ${limit})`;
  return `${process}'s ${kind} lock${token === undefined ? "" : ` with token ${token}`}`;
}

export function duration(ms: number): string {
  return Number.isFinite(ms) ? `${ms.toFixed(1)} ms` : "the rest of the history";
}
