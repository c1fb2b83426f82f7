/** TLS, and both families of addresses. */
import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { after, before, test } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "../../servers/zookeeper.ts";
import { ZooKeeper } from "../../src/zookeeper/index.ts";

let server: ZooKeeperServer;

before(async () => {
  server = await startZooKeeper({ tls: true });
});

after(async () => {
  await server.stop();
});

test("TLS: verified by default, to an address and to a name", async () => {
  const ca = server.certificate?.authority;
  assert.ok(ca);
  for (const host of ["127.0.0.1", "localhost"]) {
    const zk = await ZooKeeper.connect(`${host}:${server.securePort}`, { tls: { ca } });
    await zk.create(`/tls-${host}`, Buffer.alloc(900_000));
    assert.equal((await zk.getData(`/tls-${host}`)).data.length, 900_000);
    await zk.close();
  }
});

test("TLS: a certificate that is not trusted is refused, unless told otherwise", async () => {
  const address = `127.0.0.1:${server.securePort}`;
  await assert.rejects(ZooKeeper.connect(address, { tls: true, connectWithinMs: 1_000 }), {
    code: "UNREACHABLE",
    message: /certificate/,
  });
  const zk = await ZooKeeper.connect(address, { tls: { rejectUnauthorized: false } });
  await zk.close();
});

test("TLS against a plain port, and the other way round, settles", async () => {
  await assert.rejects(ZooKeeper.connect(server.address, { tls: true, connectWithinMs: 800 }), { code: "UNREACHABLE" });
  await assert.rejects(ZooKeeper.connect(`127.0.0.1:${server.securePort}`, { connectWithinMs: 800 }), {
    code: "UNREACHABLE",
  });
});

test("IPv6", async () => {
  const relay = createServer((from) => {
    const to = connect(server.port, "127.0.0.1");
    from.pipe(to).pipe(from);
    for (const socket of [from, to]) socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => void relay.listen(0, "::1", resolve));
  const address = relay.address();
  assert.ok(address !== null && typeof address === "object");
  const zk = await ZooKeeper.connect(`[::1]:${address.port}`);
  assert.equal(zk.server, `[::1]:${address.port}`);
  await zk.getData("/zookeeper");
  await zk.close();
  await new Promise((resolve) => void relay.close(resolve));
});
