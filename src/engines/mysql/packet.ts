/**
 * SQL from the files in `sql/`, with values put in: what is sent in one packet. A `:word` in a file is a value; it
 * becomes a number, a hexadecimal literal or a plain word, so no value can ever end its literal and become SQL, whatever
 * the server's SQL mode. Several statements travel as text: a prepared statement holds one. The two of the uncontended way
 * are prepared, since reading their text would cost the server more than the rest of their work.
 */
import { readFileSync } from "node:fs";

/** A plain string is the name of a bell and is checked; all other text travels as bytes. */
export type Value = number | bigint | string | Uint8Array | null | readonly Uint8Array[];
export type Values = Readonly<Record<string, Value>>;

export interface Packet {
  readonly sql: string;
  /** How many results it brings. */
  readonly statements: number;
  /** The same as a prepared statement, preferred where the server or a proxy takes one. */
  readonly prepared?: Prepared;
}

export interface Prepared {
  readonly sql: string;
  readonly values: readonly (number | string | Uint8Array | null)[];
}

interface Template {
  /** SQL and the names of values, alternating. */
  readonly parts: readonly string[];
  readonly statements: number;
}

/** Microseconds since 1970 by the server's clock when the statement began; no time zone takes part. */
const CLOCK = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

function load(name: Statement): Template {
  const text = readFileSync(new URL(`./sql/${name}.sql`, import.meta.url), "utf8");
  const sql = text
    .replace(/^\s*--.*$/gm, "")
    .replace(/\s+/g, " ")
    .trim()
    .replaceAll(":clock", CLOCK);
  return { parts: sql.split(/:([a-z_]+)/), statements: sql.split(";").length - 1 };
}

/** The files in `sql/`. */
export type Statement =
  | "admit"
  | "answer"
  | "begin"
  | "begin-new"
  | "clear"
  | "close"
  | "close-empty"
  | "commit"
  | "depart"
  | "disown"
  | "endings"
  | "evict"
  | "evicted"
  | "grant"
  | "granted"
  | "heard"
  | "inside"
  | "inspect"
  | "join"
  | "listen"
  | "names"
  | "pass"
  | "put-down"
  | "renew"
  | "ring"
  | "ring-passed"
  | "steal"
  | "sweep-endings"
  | "sweep-look"
  | "sweep-names"
  | "take"
  | "tell"
  | "tell-passed"
  | "touch"
  | "unfold";

const templates = new Map<Statement, Template>();

function templateOf(name: Statement): Template {
  const template = templates.get(name) ?? load(name);
  templates.set(name, template);
  return template;
}

const WORD = /^[a-z0-9:._-]{1,64}$/;

function literal(value: Value | undefined, name: string): string {
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  if (typeof value === "bigint") return String(value);
  if (value === null) return "NULL";
  if (typeof value === "string" && WORD.test(value)) return `'${value}'`;
  if (value instanceof Uint8Array) return hexadecimal(value);
  if (Array.isArray(value) && value.length > 0) return value.map(hexadecimal).join(",");
  throw new TypeError(`the value of :${name} cannot be put into SQL`);
}

function hexadecimal(bytes: Uint8Array): string {
  return `X'${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}'`;
}

/** The statements of these files, in this order. */
export function packet(names: readonly Statement[], values: Values): Packet {
  let sql = "";
  let statements = 0;
  for (const name of names) {
    const template = templateOf(name);
    statements += template.statements;
    template.parts.forEach((part, index) => {
      sql += index % 2 === 0 ? part : literal(values[part], part);
    });
  }
  return { sql, statements };
}

/** The single statement of a file, with its values beside it. */
export function preparedPacket(name: Statement, values: Values): Packet {
  const { parts } = templateOf(name);
  const given: (number | string | Uint8Array | null)[] = [];
  for (let index = 1; index < parts.length; index += 2) given.push(parameter(values[parts[index] ?? ""], parts[index]));
  return {
    get sql() {
      return packet([name], values).sql;
    },
    statements: 1,
    prepared: { sql: preparedText(name), values: given },
  };
}

const preparedTexts = new Map<Statement, string>();

function preparedText(name: Statement): string {
  const text =
    preparedTexts.get(name) ??
    templateOf(name)
      .parts.map((part, index) => (index % 2 === 0 ? part : "?"))
      .join("")
      .replace(/;$/, "");
  preparedTexts.set(name, text);
  return text;
}

function parameter(value: Value | undefined, name = ""): number | string | Uint8Array | null {
  if (typeof value === "number" || typeof value === "string" || value === null || value instanceof Uint8Array)
    return value;
  throw new TypeError(`the value of :${name} cannot be a parameter`);
}

/** A packet of plain SQL, without values. */
export function plainPacket(sql: string): Packet {
  return { sql, statements: sql.split(";").filter((each) => each.trim() !== "").length };
}

/** One transaction of packets of one statement each. The first and the last result are its begin and its commit. */
export function transaction(packets: readonly Packet[]): Packet {
  const all = ["START TRANSACTION", ...packets.map((each) => each.sql.replace(/;\s*$/, "")), "COMMIT"];
  return { sql: all.join(";"), statements: all.length };
}

/** Both, one after the other. */
export function together(left: Packet, right: Packet): Packet {
  return { sql: `${left.sql};${right.sql}`.replace(/;\s*;/g, ";"), statements: left.statements + right.statements };
}
