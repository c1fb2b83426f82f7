/** The HTTP fence, for fetch-style handlers and for node:http. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { fencingHeaders, httpFence, memoryFence, StaleTokenError, type Fencing } from "../../src/fence/index.ts";
import { guardCases, type Guarded } from "./guard-cases.ts";

type Fetch = (url: string, init?: RequestInit) => Promise<Response>;

const values = new Map<string, string>();
const fence = httpFence();
const handler = fence.fetch(async (request) => {
  const { pathname } = new URL(request.url);
  if (request.method === "PUT") {
    const body = await request.text();
    await new Promise(setImmediate);
    values.set(pathname, body);
  }
  return new Response(values.get(pathname) ?? "", { status: values.has(pathname) ? 200 : 404 });
});
const fetchStyle: Fetch = (url, init) => handler(new Request(`http://guarded.test${url}`, init));

let server: Server;
let base = "";
const nodeStyle: Fetch = (url, init) => fetch(base + url, init);
const nodeValues = new Map<string, string>();

before(async () => {
  const listener = httpFence().node(async (request, response) => {
    const { url = "", method } = request;
    if (method === "PUT") {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      nodeValues.set(url, Buffer.concat(chunks).toString());
    }
    if (url === "/broken") throw new Error("the listener's own failure");
    const value = nodeValues.get(url);
    response.writeHead(value === undefined ? 404 : 200).end(value ?? "");
  });
  server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

function guarded(send: Fetch, epoch: number): Guarded {
  const url = (name: string): string => `/-${encodeURIComponent(name)}`;
  const checked = async (name: string, fencing: Fencing, init: RequestInit): Promise<void> => {
    const response = await send(url(name), { ...init, headers: fencingHeaders(fencing, { epoch }) });
    const text = await response.text();
    if (response.status === 412) {
      const token = typeof fencing === "bigint" ? fencing : fencing.token;
      assert.equal(JSON.parse(text).code, "STALE_TOKEN");
      throw new StaleTokenError(name, token);
    }
    assert.ok(response.status === 200 || response.status === 404, text);
  };
  return {
    enter: (name, fencing) => checked(name, fencing, { method: "GET" }),
    write: (name, fencing, value) => checked(name, fencing, { method: "PUT", body: value }),
    read: async (name) => {
      const response = await send(url(name));
      return response.status === 200 ? await response.text() : undefined;
    },
  };
}

guardCases("HTTP, fetch", () => guarded(fetchStyle, 0), (epoch) => guarded(fetchStyle, epoch)); // prettier-ignore
guardCases("HTTP, node", () => guarded(nodeStyle, 0), (epoch) => guarded(nodeStyle, epoch)); // prettier-ignore

test("HTTP: a missing or malformed token is refused where something may change", async () => {
  for (const send of [fetchStyle, nodeStyle]) {
    const missing = await send("/x", { method: "PUT", body: "x" });
    assert.equal(missing.status, 428);
    assert.equal(missing.headers.get("content-type"), "application/problem+json");
    assert.equal(((await missing.json()) as { code: string }).code, "TOKEN_REQUIRED");
    for (const token of [
      "",
      "-1",
      "1.5",
      "0x10",
      "1, 2",
      "1;epoch=-1",
      "99999999999999999999",
      "9223372036854775808",
    ]) {
      const refused = await send("/x", { method: "PUT", body: "x", headers: { "fencing-token": token } });
      assert.equal(refused.status, 400, token);
      await refused.body?.cancel();
    }
    const plain = await send("/x");
    assert.equal(plain.status, 404, "a read without a token passes");
    await plain.body?.cancel();
  }
});

test("HTTP: a request that was let in has ended before a later holder's first one begins", async () => {
  const order: string[] = [];
  const slow = httpFence({ key: () => "one" }).fetch(async (_, fencing) => {
    order.push(`${fencing?.token} in`);
    await new Promise((resolve) => setTimeout(resolve, fencing?.token === 1n ? 50 : 1));
    order.push(`${fencing?.token} out`);
    return new Response();
  });
  const put = (token: bigint): Promise<Response> =>
    slow(new Request("http://x.test/", { method: "PUT", headers: fencingHeaders(token) }));
  const responses = await Promise.all([put(1n), put(2n), put(1n)]);
  assert.deepEqual(
    responses.map((each) => each.status),
    [200, 200, 412],
  );
  assert.deepEqual(order, ["1 in", "1 out", "2 in", "2 out"]);
});

test("HTTP: a failure of the handler is its own, and the next request is served", async () => {
  const broken = await nodeStyle("/broken", { method: "PUT", headers: fencingHeaders(1n) }).catch(() => undefined);
  assert.equal(broken, undefined, "the connection is broken off");
  const after = await nodeStyle("/fine", { method: "PUT", body: "x", headers: fencingHeaders(1n) });
  assert.equal(after.status, 200);
  const failing = httpFence().fetch(() => Promise.reject(new Error("own")));
  const request = (): Request => new Request("http://x.test/", { method: "PUT", headers: fencingHeaders(1n) });
  await assert.rejects(failing(request()), /own/);
  await assert.rejects(failing(request()), /own/);
});

test("HTTP: memory is bounded, and another keeper may be used instead", async () => {
  const put = (path: string, token: bigint): Request =>
    new Request(`http://x.test${path}`, { method: "PUT", headers: fencingHeaders(token) });
  const small = httpFence({ mostKeys: 2 }).fetch(() => new Response());
  assert.equal((await small(put("/a", 1n))).status, 200);
  assert.equal((await small(put("/b", 1n))).status, 200);
  assert.equal((await small(put("/c", 1n))).status, 503);
  assert.equal((await small(put("/a", 2n))).status, 200);
  const keeper = memoryFence();
  const other = httpFence({ enter: (_, fencing) => keeper.enter(fencing) }).fetch(() => new Response());
  assert.equal((await other(put("/a", 2n))).status, 200);
  assert.equal((await other(put("/a", 1n))).status, 412);
});

test("HTTP: the header carries the epoch", () => {
  assert.deepEqual(fencingHeaders({ token: 5n, mode: "exclusive" }), { "fencing-token": "5" });
  assert.deepEqual(fencingHeaders(5n, { epoch: 3 }), { "fencing-token": "5;epoch=3" });
});
