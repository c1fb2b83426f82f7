/** Servers that lie, babble or fall silent: the client settles every request, says what is wrong, and never crashes. */
import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import * as fc from "fast-check";
import { freePort } from "../../servers/free-port.ts";
import { JuteReader, type JuteWriter } from "../../src/zookeeper/jute.ts";
import { FrameReader, packet } from "../../src/zookeeper/frames.ts";
import { ZooKeeper } from "../../src/zookeeper/index.ts";

interface Script {
  readonly address: string;
  /** How many connections there have been. */
  readonly connections: () => number;
  close(): Promise<void>;
}

/** A server that answers each packet of a client as `answer` says. The first packet of a connection is the handshake. */
async function scripted(
  answer: (socket: Socket, body: Buffer, index: number, connection: number) => void,
): Promise<Script> {
  const port = await freePort();
  let connections = 0;
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    const connection = connections++;
    const frames = new FrameReader(2 ** 20);
    let index = 0;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (chunk: Buffer) => {
      for (const body of frames.frames(chunk)) answer(socket, body, index++, connection);
    });
  });
  await new Promise<void>((resolve) => void server.listen(port, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${port}`,
    connections: () => connections,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

function welcome(sessionId = 77n, timeoutMs = 5_000): Buffer {
  return packet((writer) => writer.int32(0).int32(timeoutMs).int64(sessionId).buffer(Buffer.alloc(16, 1)).bool(false));
}

function reply(xid: number, errorCode = 0, write: (writer: JuteWriter) => unknown = () => {}): Buffer {
  return packet((writer) => void write(writer.int32(xid).int64(1n).int32(errorCode)));
}

const xidOf = (body: Buffer): number => new JuteReader(body).int32();

async function withScript(
  answer: Parameters<typeof scripted>[0],
  use: (zk: ZooKeeper, script: Script) => Promise<void>,
): Promise<void> {
  const script = await scripted(answer);
  const zk = await ZooKeeper.connect(script.address, { sessionTimeoutMs: 5_000 });
  try {
    await use(zk, script);
  } finally {
    await zk.close();
    await script.close();
  }
}

test("a server that answers another request than the oldest: the connection is dropped, the next one is in step", async () => {
  await withScript(
    (socket, body, index, connection) => {
      if (index === 0) socket.write(welcome());
      else socket.write(reply(connection === 0 ? xidOf(body) + 5 : xidOf(body), -101));
    },
    async (zk, script) => {
      const change = zk.setData("/a", "x");
      await assert.rejects(change, { code: "CONNECTION_LOSS", outcome: "unknown" });
      await assert.rejects(zk.setData("/a", "x"), { code: "NO_NODE" });
      assert.equal(script.connections(), 2);
    },
  );
});

test("a server that gives another session than the one asked for: ours has expired", async () => {
  await withScript(
    (socket, _, index, connection) => {
      if (index === 0) socket.write(welcome(77n + BigInt(connection)));
      else socket.destroy();
    },
    async (zk) => {
      await assert.rejects(zk.getData("/a"), { code: "SESSION_EXPIRED" });
      assert.equal(zk.state, "expired");
    },
  );
});

test("a server that closes at once, as one does that is behind us: another attempt follows", async () => {
  const script = await scripted((socket, _, index, connection) => {
    if (connection < 4) socket.destroy();
    else if (index === 0) socket.write(welcome());
  });
  const zk = await ZooKeeper.connect(script.address, { connectWithinMs: 10_000 });
  assert.equal(script.connections(), 5);
  await zk.close();
  await script.close();
});

test("packets with impossible lengths and contents", async () => {
  const nonsense: readonly Buffer[] = [
    Buffer.from("ffffffff", "hex"), // a negative length
    Buffer.from("7fffffff", "hex"), // a length of 2 GiB
    Buffer.from("00000000", "hex"), // an empty packet
    Buffer.from("00000003000000", "hex"), // shorter than any header
    reply(-1, 0, (writer) => writer.int32(1)), // an event without a path
    reply(99), // an answer to nothing
    reply(1, 0, (writer) => writer.int32(2 ** 30)), // data that is not there
  ];
  for (const bytes of nonsense) {
    await withScript(
      (socket, body, index, connection) => {
        if (index === 0) socket.write(welcome());
        else if (connection === 0) socket.write(bytes);
        else socket.write(reply(xidOf(body), -101));
      },
      async (zk, script) => {
        // The request fails as one that cannot be understood, or is answered by the next connection.
        await assert.rejects(zk.getData("/a"), ({ code }: { code: string }) =>
          ["PROTOCOL_ERROR", "PACKET_TOO_LARGE", "NO_NODE"].includes(code),
        );
        await assert.rejects(zk.getData("/b"), { code: "NO_NODE" });
        assert.equal(script.connections(), 2);
      },
    );
  }
});

test("any bytes at all in place of the handshake: connect settles", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 60 }), async (bytes) => {
      const script = await scripted((socket) => socket.end(bytes));
      try {
        const zk = await ZooKeeper.connect(script.address, { sessionTimeoutMs: 1_000, connectWithinMs: 60 });
        await zk.close(); // bytes that happen to be a welcome
      } catch (error) {
        assert.equal((error as { code?: string }).code, "UNREACHABLE");
      } finally {
        await script.close();
      }
    }),
    { numRuns: 25 },
  );
});

test("any bytes at all in place of a reply: every request settles, and the session goes on", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 80 }), async (bytes) => {
      await withScript(
        (socket, body, index, connection) => {
          if (index === 0) socket.write(welcome());
          else if (connection === 0) socket.end(bytes);
          else socket.write(reply(xidOf(body), -101));
        },
        async (zk) => {
          const outcomes = await Promise.allSettled([zk.getData("/a"), zk.setData("/a", "x"), zk.getChildren("/a")]);
          for (const outcome of outcomes) assert.equal(outcome.status, "rejected");
          await assert.rejects(zk.getData("/b"), { code: "NO_NODE" });
        },
      );
    }),
    { numRuns: 50 },
  );
});

test("a watcher that throws does not end the reading: the error is an uncaught exception of its own", async () => {
  const event = packet((writer) => writer.int32(-1).int64(-1n).int32(0).int32(3).int32(3).string("/a"));
  await withScript(
    (socket, body, index) => {
      if (index === 0) socket.write(welcome());
      else if (index === 1) socket.write(reply(xidOf(body), 0, (writer) => writer.string("").buffer(Buffer.alloc(68))));
      else socket.write(Buffer.concat([event, reply(xidOf(body), -101)]));
    },
    async (zk) => {
      const uncaught = new Promise<Error>((resolve) => {
        const others = process.listeners("uncaughtException");
        process.removeAllListeners("uncaughtException");
        process.once("uncaughtException", (error) => {
          for (const listener of others) process.on("uncaughtException", listener);
          resolve(error);
        });
      });
      await zk.getData("/a", {
        watch: () => {
          throw new Error("from the watcher");
        },
      });
      await assert.rejects(zk.getData("/b"), { code: "NO_NODE" });
      assert.equal((await uncaught).message, "from the watcher");
    },
  );
});
