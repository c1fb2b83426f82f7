/** The order of requests and replies, lost connections, aborts and limits, without a socket. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionLossError, ProtocolError, ZooKeeperError } from "../../src/zookeeper/errors.ts";
import { JuteReader, JuteWriter } from "../../src/zookeeper/jute.ts";
import { exists, type Operation, remove, setData, sync } from "../../src/zookeeper/operations.ts";
import { RequestLine } from "../../src/zookeeper/request-line.ts";

const at = { monoMs: 0, wallMs: 0 };
const lost = new Error("gone");

function newLine(limits: { maxPacketBytes?: number; maxRequests?: number } = {}): {
  line: RequestLine;
  idle: () => number;
} {
  let idle = 0;
  const line = new RequestLine({
    maxPacketBytes: 1000,
    maxRequests: 100,
    showPath: (path) => path.replace(/^\/chroot/, ""),
    onIdle: () => idle++,
    ...limits,
  });
  return { line, idle: () => idle };
}

/** The numbers of the requests in `bytes`. */
function xids(bytes: Buffer | undefined): number[] {
  const found: number[] = [];
  if (bytes === undefined) return found;
  for (let offset = 0; offset < bytes.length; offset += 4 + bytes.readInt32BE(offset)) {
    found.push(bytes.readInt32BE(offset + 4));
  }
  return found;
}

/** Everything is added at the time 0. */
const add = <T>(line: RequestLine, operation: Operation<T>, signal?: AbortSignal): Promise<T> =>
  line.add(operation, 0, signal);

const answer = (line: RequestLine, xid: number, errorCode = 0, body: Buffer = Buffer.alloc(0)): unknown =>
  line.answer({ xid, zxid: 1n, errorCode }, new JuteReader(body));

test("requests are numbered as they are sent, and answered in that order", async () => {
  const { line, idle } = newLine();
  const first = add(line, sync("/a"));
  const second = add(line, remove("/chroot/b", -1));
  assert.deepEqual(xids(line.takeBytes(at)), [1, 2]);
  assert.equal(line.takeBytes(at), undefined);
  assert.throws(() => answer(line, 2), ProtocolError);
  answer(line, 1);
  await first;
  assert.equal(idle(), 0);
  answer(line, 2, -101);
  await assert.rejects(second, { code: "NO_NODE", path: "/b", message: "delete /b: NO_NODE (-101)" });
  assert.equal(idle(), 1);
  assert.throws(() => answer(line, 3), ProtocolError);
});

test("an error that is a value for the operation", async () => {
  const { line } = newLine();
  const found = add(line, exists("/a", false));
  line.takeBytes(at);
  answer(line, 1, -101);
  assert.equal(await found, null);
});

test("after a lost connection: changes are unknown, reads are sent again, what was not sent stays", async () => {
  const { line } = newLine();
  const read = add(line, sync("/read"));
  const change = add(line, setData("/chroot/change", Buffer.from("x"), -1));
  line.takeBytes(at);
  const late = add(line, remove("/late", -1));
  line.connectionLost(lost);
  await assert.rejects(change, (error) => {
    assert.ok(error instanceof ConnectionLossError);
    assert.equal(error.outcome, "unknown");
    assert.equal(error.path, "/change");
    assert.equal(error.cause, lost);
    return true;
  });
  assert.equal(line.unanswered, 0);
  assert.deepEqual(xids(line.takeBytes(at)), [3, 4]);
  answer(line, 3);
  answer(line, 4);
  await Promise.all([read, late]);
});

test("a read is not sent for ever, and a reply that cannot be read is not asked for again", async () => {
  const { line } = newLine();
  const read = add(line, sync("/a"));
  for (let n = 0; n < 3; n++) {
    line.takeBytes(at);
    line.connectionLost(lost);
    assert.equal(line.waiting, 1);
  }
  line.takeBytes(at);
  line.connectionLost(lost);
  await assert.rejects(read, { code: "CONNECTION_LOSS", outcome: "not-applied" });

  const hopeless = add(line, exists("/b", false));
  const behind = add(line, sync("/c"));
  const [xid = 0] = xids(line.takeBytes(at));
  const short = new JuteWriter().int64(1n).finish();
  let cause: unknown;
  assert.throws(
    () => answer(line, xid, 0, short),
    (error) => ((cause = error), error instanceof ProtocolError),
  );
  line.connectionLost(cause as Error);
  await assert.rejects(hopeless, { code: "PROTOCOL_ERROR" });
  const [again = 0] = xids(line.takeBytes(at));
  answer(line, again);
  await behind;
});

test("abort: not sent, it is withdrawn; sent, its reply still takes its turn", async () => {
  const { line, idle } = newLine();
  const early = new AbortController();
  const late = new AbortController();
  const withdrawn = add(line, sync("/a"), early.signal);
  const sent = add(line, sync("/b"), late.signal);
  const other = add(line, sync("/c"), late.signal);
  early.abort(new Error("early"));
  await assert.rejects(withdrawn, /early/);
  assert.deepEqual(xids(line.takeBytes(at)), [1, 2]);
  answer(line, 1);
  await sent;
  late.abort(new Error("late"));
  await assert.rejects(other, /late/);
  assert.equal(idle(), 1);
  answer(line, 2);
  await assert.rejects(add(line, sync("/d"), late.signal), /late/);
  assert.equal(line.takeBytes(at), undefined);
});

test("limits on the size and the number of requests", async () => {
  const { line } = newLine({ maxPacketBytes: 100, maxRequests: 2 });
  await assert.rejects(add(line, setData("/a", Buffer.alloc(90), -1)), (error) => {
    assert.ok(error instanceof ZooKeeperError);
    assert.equal(error.code, "PACKET_TOO_LARGE");
    assert.match(error.message, /setData: the request has 112 bytes, the server takes 100/);
    return true;
  });
  const waiting = [add(line, sync("/a")), add(line, sync("/b"))];
  await assert.rejects(add(line, sync("/c")), { code: "TOO_MANY_REQUESTS" });
  line.failWaiting(-1, lost);
  assert.equal(line.waiting, 2);
  line.failWaiting(0, lost);
  for (const each of waiting) await assert.rejects(each, { outcome: "not-applied" });
  const last = add(line, sync("/d"));
  line.failAll(lost);
  await assert.rejects(last, lost);
});

test("thousands of requests in a row keep their order, and the line does not grow", async () => {
  const { line } = newLine();
  let answered = 0;
  for (let n = 1; n <= 10_000; n++) {
    void add(line, sync("/a")).then(() => answered++);
    const [xid = 0] = xids(line.takeBytes(at));
    assert.equal(xid, n);
    if (n % 3 === 0) for (let back = 2; back >= 0; back--) answer(line, n - back);
  }
  await Promise.resolve();
  assert.equal(answered, 9_999);
  assert.equal(line.unanswered, 1);
});
