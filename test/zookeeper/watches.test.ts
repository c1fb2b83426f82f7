/** Which watchers an event concerns, and what is set again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameReader } from "../../src/zookeeper/frames.ts";
import { JuteReader } from "../../src/zookeeper/jute.ts";
import { EventType, OpCode } from "../../src/zookeeper/protocol.ts";
import { readPaths } from "../../src/zookeeper/records.ts";
import { type WatchEvent, type Watcher, Watches, type WatchType } from "../../src/zookeeper/watches.ts";

const newWatches = (): Watches => new Watches((path) => path);

function recorder(): { seen: string[]; watcher: Watcher } {
  const seen: string[] = [];
  return { seen, watcher: ({ type, path }: WatchEvent) => void seen.push(`${type} ${path}`) };
}

test("an event uses up the one-shot watches that it stands for, and no others", () => {
  const cases: readonly [event: number, used: readonly WatchType[]][] = [
    [EventType.created, ["data", "exists"]],
    [EventType.dataChanged, ["data", "exists"]],
    [EventType.childrenChanged, ["children"]],
    [EventType.deleted, ["data", "exists", "children"]],
  ];
  for (const [event, used] of cases) {
    const watches = newWatches();
    for (const type of ["data", "exists", "children"] as const) watches.add(type, "/a", recorder().watcher);
    watches.deliver({ type: event, path: "/b" });
    assert.equal(watches.size, 3);
    watches.deliver({ type: event, path: "/a" });
    for (const type of ["data", "exists", "children"] as const)
      assert.equal(watches.has(type, "/a"), !used.includes(type));
  }
});

test("one event tells a watcher once, however often it was set on the path", () => {
  const watches = newWatches();
  const { seen, watcher } = recorder();
  for (const type of ["data", "children", "persistent", "recursive"] as const) watches.add(type, "/a", watcher);
  watches.add("data", "/a", watcher);
  watches.deliver({ type: EventType.deleted, path: "/a" });
  assert.deepEqual(seen, ["deleted /a"]);
});

test("persistent watches stay; recursive ones see all below and no lists of children", () => {
  const watches = newWatches();
  const persistent = recorder();
  const recursive = recorder();
  const root = recorder();
  watches.add("persistent", "/a", persistent.watcher);
  watches.add("recursive", "/a", recursive.watcher);
  watches.add("recursive", "/", root.watcher);
  for (const [type, path] of [
    [EventType.dataChanged, "/a"],
    [EventType.childrenChanged, "/a"],
    [EventType.created, "/a/b"],
    [EventType.deleted, "/a/b/c"],
    [EventType.created, "/ab"],
    [EventType.dataChanged, "/"],
  ] as const) {
    watches.deliver({ type, path });
  }
  assert.deepEqual(persistent.seen, ["changed /a", "children /a"]);
  assert.deepEqual(recursive.seen, ["changed /a", "created /a/b", "deleted /a/b/c"]);
  assert.deepEqual(root.seen, ["changed /a", "created /a/b", "deleted /a/b/c", "created /ab", "changed /"]);
  watches.deliverMissed();
  assert.equal(persistent.seen.at(-1), "missed /a");
  assert.equal(recursive.seen.at(-1), "missed /a");
});

test("at the end of the session every watcher learns it once for each path", () => {
  const watches = newWatches();
  const { seen, watcher } = recorder();
  watches.add("data", "/a", watcher);
  watches.add("children", "/a", watcher);
  watches.add("recursive", "/b", watcher);
  watches.deliverLost();
  assert.deepEqual(seen.sort(), ["lost /a", "lost /b"]);
  assert.equal(watches.size, 0);
});

test("a watcher may set and take away watches while it is told", () => {
  const watches = newWatches();
  const again: Watcher = () => watches.add("data", "/a", again);
  const other = recorder();
  watches.add("data", "/a", again);
  watches.add("data", "/a", () => watches.remove("persistent", "/a", other.watcher));
  watches.add("persistent", "/a", other.watcher);
  watches.deliver({ type: EventType.dataChanged, path: "/a" });
  assert.ok(watches.has("data", "/a"));
  assert.equal(watches.has("persistent", "/a"), false);
});

test("an event of a kind that is not known is let pass", () => {
  const watches = newWatches();
  watches.add("data", "/a", recorder().watcher);
  watches.deliver({ type: 77, path: "/a" });
  assert.equal(watches.size, 1);
});

/** The packet's op code and its lists of paths. */
function decode(bytes: Buffer): { opCode: number; zxid: bigint; lists: string[][] } {
  const [body] = new FrameReader(2 ** 20).frames(bytes);
  assert.ok(body);
  const reader = new JuteReader(body);
  assert.equal(reader.int32(), -8);
  const opCode = reader.int32();
  const zxid = reader.int64();
  const lists: string[][] = [];
  while (reader.remaining > 0) lists.push(readPaths(reader));
  return { opCode, zxid, lists };
}

test("everything is set again, in packets of a bounded size", () => {
  const watches = newWatches();
  assert.deepEqual(watches.resetPackets(7n), []);
  const paths = Array.from({ length: 4_000 }, (_, n) => `/some/parent/with-a-name/child-${n}`.padEnd(200, "x"));
  paths.forEach((path, n) => watches.add((["data", "exists", "children"] as const)[n % 3] ?? "data", path, () => {}));
  const packets = watches.resetPackets(7n);
  assert.ok(packets.length > 5);
  const set: string[] = [];
  for (const bytes of packets) {
    assert.ok(bytes.length < 140 * 1024);
    const { opCode, zxid, lists } = decode(bytes);
    assert.equal(opCode, OpCode.setWatches);
    assert.equal(zxid, 7n);
    assert.equal(lists.length, 3);
    set.push(...lists.flat());
  }
  assert.deepEqual(set.sort(), paths.sort());
});

test("persistent watches need the newer packet; one path alone may be set again", () => {
  const watches = newWatches();
  watches.add("data", "/a", () => {});
  watches.add("persistent", "/a", () => {});
  watches.add("recursive", "/b", () => {});
  const [bytes] = watches.resetPackets(9n);
  assert.ok(bytes);
  assert.deepEqual(decode(bytes), { opCode: OpCode.setWatches2, zxid: 9n, lists: [["/a"], [], [], ["/a"], ["/b"]] });
  const [only] = watches.resetPackets(9n, "/b");
  assert.ok(only);
  assert.deepEqual(decode(only).lists, [[], [], [], [], ["/b"]]);
  assert.deepEqual(watches.resetPackets(9n, "/none"), []);
});
