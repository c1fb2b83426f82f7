/** The statements of statements.sql, prepared once for each connection. */
import { readFileSync } from "node:fs";
import type { DatabaseSync, StatementSync } from "node:sqlite";

/** The text of a .sql file of this folder. */
export function sqlFile(name: string): string {
  return readFileSync(new URL(name, import.meta.url), "utf8");
}

let texts: Map<string, string> | undefined;

function statementTexts(): Map<string, string> {
  if (texts !== undefined) return texts;
  texts = new Map();
  for (const part of sqlFile("statements.sql")
    .split(/^-- name: /m)
    .slice(1)) {
    const end = part.indexOf("\n");
    texts.set(part.slice(0, end).trim(), part.slice(end + 1).replace(/^--.*$/gm, ""));
  }
  return texts;
}

export class Statements {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** The statement of that name. Prepared at its first use; keep it where it is used often. */
  get(name: string): StatementSync {
    const known = this.#prepared.get(name);
    if (known !== undefined) return known;
    const text = statementTexts().get(name);
    if (text === undefined) throw new Error(`statements.sql has no statement ${name}`);
    const statement = this.#database.prepare(text);
    this.#prepared.set(name, statement);
    return statement;
  }
}
