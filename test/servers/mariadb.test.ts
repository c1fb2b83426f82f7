import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createConnection } from "mysql2/promise";
import { startMariadb } from "../../servers/mariadb.ts";

test("a MariaDB server keeps its data over a kill, and answers after a thaw", async () => {
  const server = await startMariadb();
  try {
    await server.query("CREATE TABLE t (n INT PRIMARY KEY); INSERT INTO t VALUES (7)");
    const pid = server.pid;
    await server.restart();
    assert.notEqual(server.pid, pid);
    assert.deepEqual(await server.query("SELECT n FROM t"), [{ n: 7 }]);
    server.freeze();
    const reply = server.query("SELECT 1 AS one");
    assert.equal(await Promise.race([reply, sleep(200, "silence")]), "silence");
    server.thaw();
    assert.deepEqual(await reply, [{ one: 1 }]);
    const user = await createConnection(server.url);
    await user.query("CREATE TABLE u (n INT)");
    await user.end();
  } finally {
    await server.stop();
  }
});

test("a MariaDB server has a time zone and a clock of its own", async () => {
  const server = await startMariadb({ clock: true, timeZone: "Asia/Tokyo" });
  const seconds = async (sql: string) => Number((await server.query(`SELECT ${sql} AS s`))[0]?.["s"]);
  try {
    const sinceUtc = "TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())";
    assert.equal(await seconds(sinceUtc), 9 * 3600);
    await server.setClockOffset(3_600_000);
    assert.ok(Math.abs((await seconds("UNIX_TIMESTAMP()")) - Date.now() / 1000 - 3600) < 30);
    await server.setClockOffset(-60_000);
    assert.ok(Math.abs((await seconds("UNIX_TIMESTAMP()")) - Date.now() / 1000 + 60) < 30);
  } finally {
    await server.stop();
  }
});

test("a MariaDB server that wants TLS", async () => {
  const server = await startMariadb({ tls: true });
  try {
    await assert.rejects(createConnection(server.url));
    const client = await createConnection({ uri: server.url, ssl: { ca: server.certificate?.authority ?? "" } });
    await client.ping();
    await client.end();
  } finally {
    await server.stop();
  }
});
