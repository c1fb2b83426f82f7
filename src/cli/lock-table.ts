/** Locks as JSON and as a table. */
import type { LockInfo, QueryResult } from "../index.ts";
import { describeMs } from "./duration.ts";
import { isoTime, place } from "./holders.ts";
import type { Look } from "./output.ts";
import { printable } from "./shell-words.ts";

/** By name; of one name the held ones first, then the pending ones in the order of the queue. */
export function inOrder({ held, pending }: QueryResult): LockInfo[] {
  const names = new Map<string, LockInfo[]>();
  for (const info of [...held, ...pending]) {
    const group = names.get(info.name);
    if (group === undefined) names.set(info.name, [info]);
    else group.push(info);
  }
  return [...names.entries()].sort(([left], [right]) => (left < right ? -1 : 1)).flatMap(([, infos]) => infos);
}

/** For programs: tokens as strings (they do not fit a JSON number of every reader), times in ISO 8601. */
export function toJson(info: LockInfo, nowMs: number): Record<string, unknown> {
  const { name, mode, token, host, pid, clientId, sinceMs, remainingMs } = info;
  return {
    name,
    state: token === null ? "pending" : "held",
    mode,
    token: token === null ? null : String(token),
    host,
    pid,
    clientId,
    since: new Date(sinceMs).toISOString(),
    leaseEnds: remainingMs === null ? null : new Date(nowMs + remainingMs).toISOString(),
  };
}

const BOLD = "\x1b[1m";
const PLAIN = "\x1b[0m";
const HEADER = ["NAME", "STATE", "MODE", "TOKEN", "WHO", "SINCE", "LEASE"];

export function toTable(infos: readonly LockInfo[], look: Look): string {
  const rows = [HEADER, ...infos.map(cells)];
  const widths = HEADER.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row, at) => {
    const line = row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)));
    const text = cut(line.join("  "), look.columns);
    return look.colour && at === 0 ? BOLD + text + PLAIN : text;
  });
  return `${lines.join("\n")}\n`;
}

function cells(info: LockInfo): string[] {
  const { name, mode, token, sinceMs, remainingMs } = info;
  const state = token === null ? "pending" : "held";
  const lease = remainingMs === null ? "session" : describeMs(Math.max(0, remainingMs));
  return [printable(name), state, mode, token === null ? "-" : String(token), place(info), isoTime(sinceMs), lease];
}

function cut(line: string, columns: number | undefined): string {
  if (columns === undefined || line.length <= columns) return line;
  return `${line.slice(0, Math.max(1, columns - 1))}…`;
}
