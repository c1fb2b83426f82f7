/** `holdfast sql mysql`: the tables and the least privileges, for a database in which the locks may not make tables. */
import { readFileSync } from "node:fs";
import { type Arguments, UsageError } from "./arguments.ts";
import { nearest } from "./nearest.ts";
import { print } from "./output.ts";

/** The engines whose tables may be made by hand. Each has a schema.sql. */
const DATABASES = ["mysql"];

export async function sql(given: Arguments): Promise<number> {
  const [database, ...more] = given.positionals;
  if (database === undefined || more.length > 0) throw new UsageError("takes one database", ["sql", "mysql"]);
  if (!DATABASES.includes(database)) {
    const meant = nearest(database, DATABASES) ?? (database === "mariadb" ? "mysql" : undefined);
    const problem = `no tables are needed for ${JSON.stringify(database)}`;
    throw meant === undefined ? new UsageError(problem) : new UsageError(problem, ["sql", meant]);
  }
  await print(readFileSync(new URL(`../engines/${database}/schema.sql`, import.meta.url), "utf8"));
  return 0;
}
