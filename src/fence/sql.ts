/**
 * A guard inside the caller's own database transaction, for PostgreSQL, MySQL, MariaDB and SQLite. `enter` comes first in
 * every transaction that reads or writes the guarded rows. It refuses a holder from the past and takes a row's lock until
 * the transaction ends, so nobody else can enter between the check and the commit.
 */
import { readFileSync } from "node:fs";
import { ConfigError, StaleTokenError } from "../engine/errors.ts";
import { LONGEST_NAME_BYTES } from "../engine/name.ts";
import { checkEpoch, type FenceOptions, type Fencing, isStale, type Mark, markOf } from "./mark.ts";

export type SqlDialect = "postgres" | "mysql" | "mariadb" | "sqlite";

/** Runs one statement in the caller's transaction and returns its rows (anything for a statement without rows). */
export type SqlQuery = (sql: string, values: (string | Buffer)[]) => unknown;

export interface SqlFenceOptions extends FenceOptions {
  /** The fence's table, `schema.table` or `table`. Default "holdfast_fence". */
  table?: string | undefined;
}

export interface SqlFence {
  /** Makes the table, unless it is there: one statement, for your migrations. */
  readonly schema: string;
  /**
   * First in the transaction, before it reads. `resource` names what is guarded: 1 to 512 bytes, often the lock's name.
   * Errors: `StaleTokenError` (roll back); whatever `query` throws, deadlocks and serialisation failures among it (roll back
   * and try again, as always). Cost: one statement; on MySQL and MariaDB two.
   *
   * SQLite: begin with `BEGIN IMMEDIATE`. PostgreSQL and MySQL: any isolation level.
   */
  enter(query: SqlQuery, resource: string, fencing: Fencing): Promise<void>;
  /** The same for drivers whose calls return rows at once: node:sqlite, better-sqlite3. */
  enterSync(query: SqlQuery, resource: string, fencing: Fencing): void;
}

const PLAIN_TABLE = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/;

interface Statement {
  readonly sql: string;
  /** The names of its arguments, in the order of the placeholders. */
  readonly names: readonly string[];
}

class RowFence implements SqlFence {
  readonly schema: string;
  readonly #enter: Statement;
  readonly #seen: Statement;
  /** Whether `enter` itself tells, by a row, that the token was taken. */
  readonly #tells: boolean;
  readonly #epoch: number;

  constructor(dialect: SqlDialect, { table = "holdfast_fence", epoch = 0 }: SqlFenceOptions) {
    if (!PLAIN_TABLE.test(table)) throw new ConfigError(`${JSON.stringify(table)} is no plain table name`);
    const statements = readStatements(dialect, table);
    this.schema = statements("schema").sql;
    this.#enter = statements("enter");
    this.#seen = statements("seen");
    this.#tells = dialect === "postgres" || dialect === "sqlite";
    this.#epoch = checkEpoch(epoch);
  }

  async enter(query: SqlQuery, resource: string, fencing: Fencing): Promise<void> {
    const mark = markOf(fencing, this.#epoch);
    const values = argumentsOf(resource, mark);
    const rows = await run(query, this.#enter, values);
    if (this.#tells && hasRows(rows)) return;
    decide(resource, mark, await run(query, this.#seen, values));
  }

  enterSync(query: SqlQuery, resource: string, fencing: Fencing): void {
    const mark = markOf(fencing, this.#epoch);
    const values = argumentsOf(resource, mark);
    const rows = run(query, this.#enter, values);
    if (rows instanceof Promise) throw new ConfigError("this driver answers later: use enter() and await it");
    if (this.#tells && hasRows(rows)) return;
    decide(resource, mark, run(query, this.#seen, values));
  }
}

function argumentsOf(resource: string, { epoch, token }: Mark): Record<string, string | Buffer> {
  const name = Buffer.from(resource);
  if (name.length === 0 || name.length > LONGEST_NAME_BYTES || !resource.isWellFormed()) {
    throw new ConfigError(`a guarded resource is named by 1 to ${LONGEST_NAME_BYTES} bytes of well-formed Unicode`);
  }
  return { name, epoch: String(epoch), token: String(token) };
}

function run(query: SqlQuery, { sql, names }: Statement, values: Record<string, string | Buffer>): unknown {
  return query(
    sql,
    names.map((name) => values[name] ?? ""),
  );
}

function hasRows(rows: unknown): rows is [object, ...object[]] {
  if (Array.isArray(rows)) return rows.length > 0;
  throw new ConfigError("query has to return the rows of its statement, as an array");
}

function decide(resource: string, mark: Mark, rows: unknown): void {
  if (!hasRows(rows))
    throw new ConfigError("the fence's row is not visible to the transaction that has just written it");
  const { epoch, token } = rows[0] as { epoch: string; token: string };
  const seen = { epoch: Number(epoch), token: BigInt(token) };
  if (isStale(mark, seen)) throw new StaleTokenError(resource, mark.token, seen.token);
}

/** The statements of a dialect, with its placeholders. */
function readStatements(dialect: SqlDialect, table: string): (name: string) => Statement {
  const files: Record<SqlDialect, string> = {
    postgres: "postgres",
    mysql: "mysql",
    mariadb: "mysql",
    sqlite: "sqlite",
  };
  if (!Object.hasOwn(files, dialect)) {
    throw new ConfigError(`no fence for ${dialect}: use ${Object.keys(files).join(", ")}`);
  }
  const text = readFileSync(new URL(`./sql/${files[dialect]}.sql`, import.meta.url), "utf8");
  const sections = text.split(/^-- name: /m).slice(1);
  return (name) => {
    const section = sections.find((each) => each.startsWith(`${name}\n`)) ?? "";
    const lines = section.slice(name.length).split("\n");
    const sql = lines.map((line) => line.replace(/\s*--.*$/, "")).filter((line) => line !== "");
    return prepared(sql.join("\n").replaceAll("holdfast_fence", table), dialect === "postgres");
  };
}

/** `:name` as the driver wants it: `$1` may be used twice, `?` stands for one value each. */
function prepared(sql: string, numbered: boolean): Statement {
  const names: string[] = [];
  const withPlaceholders = sql.replaceAll(/:(name|epoch|token)\b/g, (_, name: string) => {
    if (!numbered) return names.push(name) > 0 ? "?" : "";
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return { sql: withPlaceholders, names };
}

/** A guard that lives in the database which it guards. */
export function sqlFence(dialect: SqlDialect, options: SqlFenceOptions = {}): SqlFence {
  return new RowFence(dialect, options);
}
