/** What goes into the statements and what comes out of them, as the engine's own words. */
import type { Client, QueueEntry } from "../../engine/engine.ts";
import type { Ask } from "../../engine/lease-store.ts";
import type { Result, Row } from "./client.ts";
import type { Values } from "./packet.ts";

/** What the columns hold for readers without a limit: the largest INT UNSIGNED. */
const NO_LIMIT = 4_294_967_295;
const MICROS_PER_MS = 1_000;
/** A published value of 4 KiB may need six times as much as JSON; the column has room for both. */
const CLIENT_BYTES = 1_024;
const SHORT_CLIENT_CHARACTERS = 64;

export function isRows(result: Result): result is readonly Row[] {
  return Array.isArray(result);
}

/** The rows of each statement that returned some, in order. */
export function rowSets(results: readonly Result[]): (readonly Row[])[] {
  return results.filter((result) => isRows(result));
}

export function insertId(result: Result | undefined): bigint {
  return result === undefined || isRows(result) ? 0n : BigInt(result.insertId);
}

export function affectedRows(result: Result | undefined): number {
  return result === undefined || isRows(result) ? 0 : result.affectedRows;
}

/** Bytes of the server (it sends VARBINARY as a buffer) as text. */
export function text(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString() : "";
}

/** The token in a row; null while pending. The driver brings numbers above 2^53 as text. */
export function tokenOf(row: Row): bigint | null {
  const token = row["token"];
  return typeof token === "number" || typeof token === "string" ? BigInt(token) : null;
}

export function bytes(string: string): Buffer {
  return Buffer.from(string);
}

export function micros(milliseconds: number): number {
  return Math.round(milliseconds * MICROS_PER_MS);
}

export function millis(microseconds: unknown): number {
  return Number(microseconds) / MICROS_PER_MS;
}

/** The first byte string behind all that begin with `prefix`: no byte of UTF-8 is 0xff. */
export function behind(prefix: string): Buffer {
  if (prefix === "") return Buffer.of(0xff);
  const next = bytes(prefix);
  next[next.length - 1] = (next.at(-1) ?? 0) + 1;
  return next;
}

export function askValues(ask: Ask): Values {
  return {
    name: bytes(ask.name),
    owner: bytes(ask.owner),
    owners: [bytes(ask.owner)],
    shared: ask.mode === "shared" ? 1 : 0,
    most: ask.mode === "exclusive" ? 1 : Math.min(ask.limit, NO_LIMIT),
    ttl_us: micros(ask.ttlMs),
    pending_us: micros(ask.pendingTtlMs),
    kept_for_us: micros(ask.minHoldMs),
    min_hold_us: micros(ask.minHoldMs),
    stays: ask.wait || ask.steal ? 1 : 0,
    steal: ask.steal ? 1 : 0,
    client: clientBytes(ask),
  };
}

/** One connection is one client, whose bytes need not be made for each request. */
let latest: { readonly client: Client; readonly bytes: Uint8Array } | undefined;

function clientBytes({ client, value }: Ask): Uint8Array {
  if (value === undefined && latest?.client === client) return latest.bytes;
  const published = value === undefined ? [] : [value];
  const { clientId, host, pid } = client;
  const fits = Buffer.byteLength(JSON.stringify([clientId, host, pid])) <= CLIENT_BYTES;
  const who = fits ? [clientId, host, pid] : [clientId.slice(0, SHORT_CLIENT_CHARACTERS), "", pid];
  const whole = bytes(JSON.stringify([...who, ...published]));
  if (value === undefined) latest = { client, bytes: whole };
  return whole;
}

/** A row of inspect.sql. */
export function entryOf(row: Row): QueueEntry {
  const [clientId, host, pid, value] = JSON.parse(text(row["client"])) as [string, string, number, string?];
  const most = Number(row["most"]);
  return {
    mode: row["shared"] === 1 ? "shared" : "exclusive",
    limit: most === NO_LIMIT ? Infinity : most,
    token: tokenOf(row),
    client: { clientId, host, pid },
    sinceMs: Math.floor(millis(row["since_us"])),
    remainingMs: millis(row["left_us"]),
    value,
  };
}
