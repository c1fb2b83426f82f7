/** A lock that is a field of a row, and the monitor that frees it, as the article has them. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Connection, createConnection, type ResultSetHeader, type RowDataPacket } from "mysql2/promise";
import type { Doors, PlantedLock } from "./lock.ts";

const POLL_MS = 10;
const TABLE = "CREATE TABLE IF NOT EXISTS field (name VARCHAR(20) PRIMARY KEY, owner VARCHAR(20), since DATETIME(6))";

async function open(url: string): Promise<Connection> {
  const connection = await createConnection(url);
  connection.on("error", () => {});
  return connection;
}

/** Before any of the others. */
export async function makeField(url: string): Promise<void> {
  const connection = await open(url);
  await connection.query(TABLE);
  await connection.query("REPLACE INTO field VALUES ('lock', NULL, NULL)");
  connection.destroy();
}

/** Writes its name into the field when it is free, and takes it out again. A dead one never does. */
export class FieldLock implements PlantedLock {
  readonly #connection: Connection;
  readonly #owner: string;
  #alive = true;

  private constructor(connection: Connection, owner: string) {
    this.#connection = connection;
    this.#owner = owner;
  }

  static async connect(url: string, owner: string): Promise<FieldLock> {
    return new FieldLock(await open(url), owner);
  }

  async acquire(): Promise<undefined> {
    const sql = "UPDATE field SET owner = ?, since = NOW(6) WHERE name = 'lock' AND owner IS NULL";
    while (this.#alive) {
      const [{ affectedRows }] = await this.#connection.query<ResultSetHeader>(sql, [this.#owner]);
      if (affectedRows === 1) return;
      await sleep(POLL_MS);
    }
  }

  async release(): Promise<void> {
    await this.#connection.query("UPDATE field SET owner = NULL WHERE name = 'lock'");
  }

  die(): void {
    this.#alive = false;
    this.#connection.destroy();
  }

  async close(): Promise<void> {
    this.#alive = false;
    this.#connection.destroy();
  }
}

/** Frees the field when it has been taken for too long. There may be several, in case one of them dies. */
export class Monitor {
  readonly #connection: Connection;
  readonly #name: string;
  readonly #doors: Doors;
  #over = false;

  private constructor(connection: Connection, name: string, doors: Doors) {
    this.#connection = connection;
    this.#name = name;
    this.#doors = doors;
  }

  static async connect(url: string, name: string, longestMs: number, doors: Doors): Promise<Monitor> {
    const monitor = new Monitor(await open(url), name, doors);
    void monitor.#watch(longestMs);
    return monitor;
  }

  async close(): Promise<void> {
    this.#over = true;
    this.#connection.destroy();
  }

  async #watch(longestMs: number): Promise<void> {
    const age = "SELECT TIMESTAMPDIFF(MICROSECOND, since, NOW(6)) / 1000 AS age FROM field WHERE owner IS NOT NULL";
    while (!this.#over) {
      const [[row]] = await this.#connection.query<RowDataPacket[]>(age).catch(() => [[]]);
      if (Number(row?.["age"] ?? 0) > longestMs) {
        await this.#doors.pass(`${this.#name} has seen it`);
        await this.#connection.query("UPDATE field SET owner = NULL WHERE name = 'lock'").catch(() => {});
      }
      await sleep(POLL_MS);
    }
  }
}
