/** What the scripts answer, as the lease store's answers. */
import type { Client, QueueEntry } from "../../engine/engine.ts";
import type { LossReason } from "../../engine/errors.ts";
import type { Answer, StoreEvents } from "../../engine/lease-store.ts";

/** Limits as the scripts know them: 0 is exclusive, this is no limit. */
const READERS = 999_999_999_999_999;

const ENDINGS: Record<string, LossReason> = { x: "expired", s: "stolen", e: "evicted" };

export function limitArgument(mode: "exclusive" | "shared", limit: number): string {
  return mode === "exclusive" ? "0" : String(Math.min(limit, READERS));
}

/** How a request stands: its token (a number, or digits where a client asks for strings), or a letter and more. */
export function toAnswer(reply: unknown, ttlMs: number, pendingTtlMs: number): Answer {
  if (typeof reply === "number") return { state: "held", token: BigInt(reply), ttlMs };
  const text = String(reply);
  if (text.startsWith("p")) return { state: "pending", ttlMs: pendingTtlMs, recheckMs: Number(text.slice(1)) };
  if (text === "b") return { state: "busy" };
  const reason = ENDINGS[text];
  if (reason !== undefined) return { state: "gone", reason };
  return { state: "held", token: BigInt(text), ttlMs };
}

/** A bell: `g<token> <owner>` is granted, `c<owner>` is to ask again. It comes as a message, or behind an answer. */
export function ring(events: StoreEvents, text: string): void {
  if (text.startsWith("c")) {
    events.check(text.slice(1));
    return;
  }
  const space = text.indexOf(" ");
  if (!/^g\d+$/.test(text.slice(0, Math.max(space, 0)))) return; // not one of ours
  events.granted(text.slice(space + 1), BigInt(text.slice(1, space)));
}

/** The first `count` answers of a reply, which may be a lone one; the bells behind them are rung. */
export function answersOf(reply: unknown, count: number, events: StoreEvents): readonly unknown[] {
  if (!Array.isArray(reply)) return [reply];
  for (let n = count; n < reply.length; n++) ring(events, String(reply[n]));
  return reply.slice(0, count);
}

/** The client, and what the request publishes, as they are written into a request behind the bell's channel. */
export function describe({ clientId, host, pid }: Client, value?: string): string {
  return JSON.stringify(value === undefined ? [clientId, host, pid] : [clientId, host, pid, value]);
}

/** The five entries of a request in the answer of inspect.lua. */
export function toEntry(fields: readonly string[]): QueueEntry {
  const [token = "0", limit = "0", sinceMicros = "0", remainingMs = "0", meta = ""] = fields;
  const description = meta.slice(meta.indexOf(" ") + 1);
  const [clientId, host, pid, value] = JSON.parse(description) as [string, string, number, string | undefined];
  return {
    mode: limit === "0" ? "exclusive" : "shared",
    limit: limit === "0" ? 1 : Number(limit) >= READERS ? Infinity : Number(limit),
    token: token === "0" ? null : BigInt(token),
    client: { clientId, host, pid },
    sinceMs: Number(sinceMicros) / 1000,
    remainingMs: Number(remainingMs),
    ...(value === undefined ? {} : { value }),
  };
}
