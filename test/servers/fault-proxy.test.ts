/** The fault proxy makes a network misbehave as TCP networks do: late or lost, but never out of order. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startFaultProxy } from "../../servers/fault-proxy.ts";

/** Remembers what it is sent, by connection, and that a connection has ended. */
let server: Server;
const received: { text: string; ended: boolean }[] = [];

before(async () => {
  server = createServer((socket: Socket) => {
    const here = { text: "", ended: false };
    received.push(here);
    socket.setEncoding("utf8").on("data", (text: string) => (here.text += text));
    socket.on("end", () => (here.ended = true)).on("error", () => {});
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
});
after(() => server.close());

async function connectThrough() {
  const proxy = await startFaultProxy((server.address() as AddressInfo).port);
  const client = connect({ port: proxy.port, host: "127.0.0.1", noDelay: true });
  await once(client, "connect");
  client.on("error", () => {}); // closing the proxy resets what is still there
  while (received.length === 0) await sleep(5);
  const there = received.pop();
  assert.ok(there !== undefined);
  return { proxy, client, there };
}

void test("bytes sent when a delay has ended do not overtake those before them", async () => {
  const { proxy, client, there } = await connectThrough();
  proxy.set({ delayMs: 100 });
  client.write("first ");
  await sleep(20);
  proxy.set({ delayMs: 0 });
  client.write("second ");
  await sleep(20);
  client.end("third");
  for (let turn = 0; turn < 200 && !there.ended; turn++) await sleep(10);
  assert.deepEqual(there, { text: "first second third", ended: true });
  await proxy.close();
});

void test("the end of a connection waits while it is stalled, and arrives afterwards", async () => {
  const { proxy, client, there } = await connectThrough();
  proxy.set({ toServer: "stall", toClient: "stall" });
  client.end();
  await sleep(50);
  assert.equal(there.ended, false);
  proxy.set({ toServer: "pass", toClient: "pass" });
  for (let turn = 0; turn < 200 && !there.ended; turn++) await sleep(10);
  assert.equal(there.ended, true);
  await proxy.close();
});
