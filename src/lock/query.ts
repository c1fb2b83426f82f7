/** The picture of who holds and who waits. */
import type { Engine, QueueEntry } from "../engine/engine.ts";
import { ConfigError } from "../engine/errors.ts";
import type { LockMode } from "../engine/queue.ts";
import { checkName } from "./options.ts";

export interface LockInfo {
  readonly name: string;
  readonly mode: LockMode;
  /** One per `connect`. */
  readonly clientId: string;
  /** Null while pending. */
  readonly token: bigint | null;
  readonly host: string;
  readonly pid: number;
  /** Wall clock of the engine, ms since 1970: when it was granted, or queued while pending. */
  readonly sinceMs: number;
  /** What is left of its lease, in ms; null where the lease is a session's. */
  readonly remainingMs: number | null;
}

export interface QueryFilter {
  /** Only this name. Cost: one round trip. */
  name?: string | undefined;
  /** Only names that start with it. Default: all. */
  prefix?: string | undefined;
  /** At most so many entries, held and pending together. Default 10,000. */
  limit?: number | undefined;
}

export interface QueryResult {
  held: LockInfo[];
  pending: LockInfo[];
}

const DEFAULT_LIMIT = 10_000;

/** Throws `TypeError` or `ConfigError`. */
export function checkFilter(filter: QueryFilter): void {
  if (typeof filter !== "object" || filter === null) throw new TypeError("a filter must be an object");
  const { name, prefix, limit = DEFAULT_LIMIT } = filter;
  if (name !== undefined) checkName(name);
  if (prefix !== undefined && typeof prefix !== "string") throw new TypeError("prefix must be a string");
  if (!(limit >= 1)) throw new ConfigError("limit must be a number from 1");
}

/** One `inspect` per name. Cost: one round trip per name and those of the listing. */
export async function queryEngine(engine: Engine, filter: QueryFilter): Promise<QueryResult> {
  const limit = filter.limit ?? DEFAULT_LIMIT;
  const result: QueryResult = { held: [], pending: [] };
  let room = limit;
  const names = filter.name === undefined ? engine.names(filter.prefix ?? "") : [filter.name];
  for await (const name of names) {
    for (const entry of await engine.inspect(name)) {
      if (room-- <= 0) return result;
      (entry.token === null ? result.pending : result.held).push(info(name, entry));
    }
  }
  return result;
}

function info(name: string, entry: QueueEntry): LockInfo {
  const { mode, token, sinceMs, remainingMs } = entry;
  return { name, mode, token, sinceMs, remainingMs, ...entry.client };
}
