/** The engine's tables: made on first use, or only checked. */
import { readFile } from "node:fs/promises";
import { ConfigError } from "../../engine/errors.ts";
import type { Row } from "./client.ts";
import { errorNumber, isMissingTable } from "./failure.ts";
import { rowSets } from "./rows.ts";
import { plainPacket } from "./packet.ts";
import type { Session } from "./session.ts";

export const SCHEMA_VERSION = 1;
const NOT_ALLOWED = new Set([1142, 1044, 1290, 1792, 1836]);

/** The SQL that makes the tables, with the least privileges in its header: for those who let nobody create tables. */
export async function schemaSql(): Promise<string> {
  return await readFile(new URL("./schema.sql", import.meta.url), "utf8");
}

/**
 * Makes the tables where they are missing and `migrate` allows it; any number of processes may do so at the same time,
 * every statement may be repeated. Rejects with `ConfigError` when they are missing or of another version.
 */
export async function prepareSchema(session: Session, migrate: boolean): Promise<void> {
  if (await isCurrent(session)) return;
  if (!migrate) {
    throw new ConfigError("the tables of Holdfast are missing in this database; `holdfast sql mysql` prints them");
  }
  const statements = (await schemaSql()).replace(/--.*$/gm, "").split(";");
  try {
    for (const statement of statements) {
      if (statement.trim() !== "") await session.run(plainPacket(statement));
    }
  } catch (error) {
    if (!NOT_ALLOWED.has(errorNumber(error) ?? 0)) throw error;
    throw new ConfigError(
      "the tables of Holdfast are missing and this user may not create them here; `holdfast sql mysql` prints them",
      { cause: new Error(error instanceof Error ? error.message : "not allowed") },
    );
  }
  await isCurrent(session);
}

async function isCurrent(session: Session): Promise<boolean> {
  const found = await readVersions(session);
  const versions = found.map((row) => Number(row["version"]));
  if (versions.length === 0) return false;
  if (versions.some((version) => version !== SCHEMA_VERSION)) {
    throw new ConfigError(
      `the tables of Holdfast in this database are of version ${versions.join(", ")}, this release needs ` +
        `${SCHEMA_VERSION}: use the release that made them, or drop the holdfast_ tables while no lock is held`,
    );
  }
  return true;
}

async function readVersions(session: Session): Promise<readonly Row[]> {
  try {
    return rowSets(await session.run(plainPacket("SELECT version FROM holdfast_schema"))).flat();
  } catch (error) {
    if (isMissingTable(error)) return [];
    throw error;
  }
}
