/**
 * What kind of server this is, found out once when the engine opens: whether it is new enough, takes writes from us, keeps
 * what it acknowledges, and whether named locks work between two sessions. Everything that differs between MySQL and
 * MariaDB and touches us is named here.
 */
import type { Clock } from "../../engine/clock.ts";
import { ConfigError } from "../../engine/errors.ts";
import type { Row } from "./client.ts";
import { isReadOnly } from "./failure.ts";
import { rowSets } from "./rows.ts";
import { plainPacket } from "./packet.ts";
import type { Session } from "./session.ts";

export interface Survey {
  /** Waiters can be woken by named locks. */
  readonly bells: boolean;
  /** What the server acknowledges survives its restart. */
  readonly keeps: boolean;
}

const OLDEST = { mysql: 8.0, mariadb: 10.06 };

/** `session` and `other` are two sessions of the same settings; the tables are there. Cost: about six round trips. */
export async function survey(session: Session, other: Session, clock: Clock): Promise<Survey> {
  const variables = await readVariables(session);
  await probeWriting(session);
  const flush = variables.get("innodb_flush_log_at_trx_commit") ?? "1";
  const syncs = variables.get("log_bin") !== "ON" || (variables.get("sync_binlog") ?? "1") !== "0";
  if (flush !== "1" || !syncs) {
    process.emitWarning(
      "the MySQL server may forget locks that it granted when it or its machine crashes: " +
        `innodb_flush_log_at_trx_commit = ${flush}, sync_binlog = ${variables.get("sync_binlog") ?? "?"} (1 is safe)`,
      { code: "HOLDFAST_DURABILITY" },
    );
  }
  // In a Galera cluster named locks are of one node alone, or refused.
  const galera = variables.get("wsrep_on") === "ON";
  return { bells: !galera && (await probeBells(session, other, clock)), keeps: flush !== "0" };
}

/** Refuses servers that are too old. */
export async function checkVersion(session: Session): Promise<void> {
  const text = String((await rowsOf(session, "SELECT VERSION() AS version"))[0]?.["version"]);
  const [, major = "0", minor = "0"] = /^(\d+)\.(\d+)/.exec(text) ?? [];
  const oldest = /mariadb/i.test(text) ? OLDEST.mariadb : OLDEST.mysql;
  if (Number(major) + Number(minor) / 100 >= oldest) return;
  throw new ConfigError(`the mysql engine needs MySQL 8.0 or MariaDB 10.6 or newer; this server is ${text}`);
}

async function readVariables(session: Session): Promise<Map<string, string>> {
  const rows = await rowsOf(
    session,
    "SHOW VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'wsrep_on')",
  );
  return new Map(rows.map((row) => [String(row["Variable_name"]), String(row["Value"])]));
}

/** Statements that change nothing, but need every privilege that the engine needs, and a server that takes writes. */
const PROBES = ["holdfast_names", "holdfast_requests", "holdfast_endings"].flatMap((table) => [
  `INSERT INTO ${table} SELECT * FROM ${table} WHERE owner = X'' AND 0 = 1`,
  `UPDATE ${table} SET owner = X'' WHERE owner = X'' AND 0 = 1`,
  `DELETE FROM ${table} WHERE owner = X'' AND 0 = 1`,
]);

async function probeWriting(session: Session): Promise<void> {
  try {
    await session.run(plainPacket(PROBES.join(";")));
  } catch (error) {
    if (!isReadOnly(error)) throw error;
    throw new ConfigError("this MySQL server is read-only (a replica?): locks need the server that takes writes", {
      cause: new Error(error instanceof Error ? error.message : "read-only"),
    });
  }
}

/**
 * Whether a named lock held by one session keeps another one out, and lets it in afterwards. It does not behind some
 * proxies, which move statements between sessions.
 */
async function probeBells(session: Session, other: Session, clock: Clock): Promise<boolean> {
  const bell = `hf:probe-${Buffer.from(clock.randomBytes(9)).toString("hex")}`;
  const ask = async (who: Session, sql: string): Promise<unknown> =>
    (await rowsOf(who, `SELECT ${sql} AS answer`))[0]?.["answer"];
  try {
    const taken = await ask(session, `GET_LOCK('${bell}', 0)`);
    const refused = await ask(other, `GET_LOCK('${bell}', 0)`);
    const released = await ask(session, `RELEASE_LOCK('${bell}')`);
    const passed = await ask(other, `GET_LOCK('${bell}', 0)`);
    await ask(other, `RELEASE_LOCK('${bell}')`);
    return taken === 1 && refused === 0 && released === 1 && passed === 1;
  } catch {
    return false;
  }
}

async function rowsOf(session: Session, sql: string): Promise<readonly Row[]> {
  return rowSets(await session.run(plainPacket(sql))).flat();
}
