/** What the judge and a client process say to each other. */
import type { EngineSpec } from "./deployment.ts";
import type { WorkerSetting } from "./worker.ts";

export interface Birth {
  readonly name: string;
  readonly historyPath: string;
  /** What must not happen is written there at once: a kill may follow. */
  readonly troublePath: string;
  readonly spec: EngineSpec;
  readonly setting: WorkerSetting;
}

/** A command to answer, or the answer of the register. */
export type ToClient =
  | readonly [kind: "call", id: number, method: string, ...parameters: unknown[]]
  | readonly [kind: "wrote", id: number, taken: boolean];

/** An answer, or a write for the register. */
export type FromClient =
  | readonly [kind: "answer", id: number, result: unknown, error?: string]
  | readonly [kind: "write", id: number, resource: string, token: bigint, write: string];
