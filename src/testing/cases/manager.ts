/** connect, query, evict and close; and what a name may be. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { aborted, neverThrows, rejection, rejectsWith, within } from "../expect.ts";
import { ClosedError, connect, EngineUnavailableError, LockLostError, NotSupportedError } from "../../index.ts";
import { refusesShared } from "./refusals.ts";

const START_OF_2020_MS = 1_577_836_800_000;

const connecting: CaseDefinition[] = [
  {
    id: "connect/traits",
    title: "the manager says what its engine promises",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      assert.deepEqual({ ...locks.traits }, { ...stage.subject.traits });
    },
  },
  {
    id: "connect/nowhere",
    title: "rejects when the server cannot be reached",
    needs: { hooks: ["connectNowhere"] },
    body: async (stage) => {
      const error = await within(2 * stage.hangMs, "connecting to nothing", rejection(stage.hook("connectNowhere")()));
      assert.ok(error instanceof EngineUnavailableError, String(error));
    },
  },
  {
    id: "connect/wrong",
    title: "a wrong URL or engine is a ConfigError that repeats no secret",
    needs: {},
    body: async () => {
      for (const url of ["nosuch://user:hunter2@host", "hunter2", ""]) {
        const error = await rejectsWith(
          "CONFIG",
          neverThrows(() => connect(url)),
        );
        assert.ok(!error.message.includes("hunter2"));
      }
      await rejectsWith(
        "CONFIG",
        neverThrows(() => connect({} as never)),
      );
    },
  },
  {
    id: "connect/several",
    title: "every connection is a client of its own",
    needs: {},
    body: async (stage) => {
      const managers = await Promise.all([stage.connect(), stage.connect()]);
      const clients = new Set<string>();
      for (const locks of managers) {
        await locks.request(stage.name, async () => {
          clients.add((await stage.queue(locks)).held[0]?.clientId ?? "");
        });
      }
      assert.equal(clients.size, 2);
    },
  },
];

const querying: CaseDefinition[] = [
  {
    id: "query/held-and-pending",
    title: "lists who holds and who waits, the pending ones in their order",
    needs: { traits: ["fair"] },
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      const controller = new AbortController();
      const waiting = [];
      for (const [index, locks] of [right, right, left].entries()) {
        waiting.push(locks.acquire(stage.name, { signal: controller.signal }).catch(() => {}));
        await stage.pending(left, index + 1);
      }
      const { held, pending } = await stage.queue(right);
      assert.deepEqual(
        held.map(({ name, mode, token, pid }) => ({ name, mode, token, pid })),
        [{ name: stage.name, mode: "exclusive", token: holder.token, pid: process.pid }],
      );
      const [first, second, third] = pending;
      assert.ok(first && second && third);
      assert.equal(first.clientId, second.clientId);
      assert.equal(third.clientId, held[0]?.clientId);
      assert.notEqual(first.clientId, third.clientId);
      assert.ok(pending.every((each) => each.token === null && each.mode === "exclusive"));
      controller.abort();
      await Promise.all(waiting);
      await holder.release();
    },
  },
  {
    id: "query/fields",
    title: "tells mode, client, host, process, since when, and what is left of the lease",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const lock = await locks.acquire(stage.name);
      const [info] = (await stage.queue(locks)).held;
      assert.ok(info);
      assert.equal(info.token, lock.token);
      assert.ok(info.clientId.length > 0 && info.host.length > 0);
      assert.equal(info.pid, process.pid);
      assert.ok(info.sinceMs > START_OF_2020_MS, "since is a time of day, in ms since 1970");
      if (stage.traits.lease === "session") assert.equal(info.remainingMs, null);
      else assert.ok(info.remainingMs !== null && info.remainingMs > 0 && info.remainingMs <= stage.ttlMs);
      await lock.release();
    },
  },
  {
    id: "query/shared",
    title: "lists all shared holders",
    needs: { traits: ["shared"] },
    otherwise: refusesShared,
    body: async (stage) => {
      const locks = await stage.connect();
      const readers = [
        await locks.acquire(stage.name, { mode: "shared" }),
        await locks.acquire(stage.name, { mode: "shared" }),
      ];
      const { held } = await stage.queue(locks);
      assert.deepEqual(
        held.map((each) => each.mode),
        ["shared", "shared"],
      );
      assert.deepEqual(new Set(held.map((each) => each.token)), new Set(readers.map((each) => each.token)));
      await Promise.all(readers.map((each) => each.release()));
    },
  },
  {
    id: "query/filter",
    title: "prefix filters by the letter, limit bounds the answer",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const names = ["a_%*[x]?", "a_%*[x]?/1", "axx", "a", "A"].map((each) => `${stage.name} ${each}`);
      const held = await Promise.all(names.map((name) => locks.acquire(name)));
      const found = async (suffix: string): Promise<string[]> => {
        const { held } = await locks.query({ prefix: `${stage.name} ${suffix}` });
        return held.map((each) => each.name).sort();
      };
      assert.deepEqual(await found("a_%*[x]?"), names.slice(0, 2).sort());
      assert.deepEqual(await found("a"), names.slice(0, 4).sort());
      assert.deepEqual(await found("A"), names.slice(4));
      assert.deepEqual(await found("none"), []);
      const { held: few, pending } = await locks.query({ prefix: stage.name, limit: 2 });
      assert.equal(few.length + pending.length, 2);
      await rejectsWith(
        "CONFIG",
        neverThrows(() => locks.query({ limit: 0 })),
      );
      await Promise.all(held.map((lock) => lock.release()));
      assert.deepEqual(await found(""), []);
    },
  },
];

const ending: CaseDefinition[] = [
  {
    id: "evict/holder",
    title: "ends the holder with that token and says so; with another token, or afterwards, it says false",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      assert.equal(await other.evict(stage.name, 1n), false);
      const lock = await locks.acquire(stage.name);
      assert.equal(await other.evict(stage.name, lock.token + 1n), false);
      assert.equal(await other.evict(stage.name, lock.token - 1n), false);
      assert.ok(lock.isHeld());
      assert.equal(await other.evict(stage.name, lock.token), true);
      assert.equal(await other.evict(stage.name, lock.token), false);
      const next = await within(stage.takeoverMs, "the next holder", other.acquire(stage.name));
      assert.ok(next.token > lock.token, "evicting lowers no token");
      assert.equal(await locks.evict(stage.name, lock.token), false);
      assert.ok(next.isHeld());
      await next.release();
      await lock.release();
    },
  },
  {
    id: "evict/checked",
    title: "a wrong name or token is refused",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      await rejectsWith(
        "CONFIG",
        neverThrows(() => locks.evict("", 1n)),
      );
      const error = await rejection(neverThrows(() => locks.evict(stage.name, 1 as unknown as bigint)));
      assert.ok(error instanceof TypeError);
    },
  },
  {
    id: "close/held",
    title: 'releases what is held: signals abort with reason "closed", others get the lock at once',
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect({ ttlMs: 30_000 }), stage.connect()]);
      const lock = await locks.acquire(stage.name);
      const losing = aborted(lock.signal);
      const waiting = other.acquire(stage.name);
      await stage.pending(other, 1);
      await within(stage.hangMs, "closing", locks.close());
      const reason = await within(stage.lateMs, "the signal", losing);
      assert.ok(reason instanceof LockLostError && reason.reason === "closed", String(reason));
      assert.equal(lock.isHeld(), false);
      await (await within(stage.lateMs, "the next holder", waiting)).release();
      await lock.release();
    },
  },
  {
    id: "close/pending",
    title: "withdraws what is pending: it rejects with ClosedError",
    needs: {},
    body: async (stage) => {
      const [locks, other] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await other.acquire(stage.name);
      const acquiring = rejection(locks.acquire(stage.name));
      const requesting = rejection(locks.request(stage.name, () => assert.fail("called back")));
      await stage.pending(other, 2);
      await within(stage.hangMs, "closing", locks.close());
      for (const error of await within(stage.lateMs, "pending requests", Promise.all([acquiring, requesting]))) {
        assert.ok(error instanceof ClosedError, String(error));
      }
      assert.equal((await stage.queue(other)).pending.length, 0, "a withdrawn request is still in the queue");
      await holder.release();
    },
  },
  {
    id: "close/afterwards",
    title: "afterwards every call rejects with ClosedError; closing again is harmless",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      await Promise.all([locks.close(), locks.close()]);
      await locks.close();
      await locks[Symbol.asyncDispose]();
      await rejectsWith(
        "CLOSED",
        neverThrows(() => locks.acquire(stage.name)),
      );
      await rejectsWith(
        "CLOSED",
        neverThrows(() => locks.tryAcquire(stage.name)),
      );
      await rejectsWith(
        "CLOSED",
        neverThrows(() => locks.request(stage.name, () => {})),
      );
      await rejectsWith(
        "CLOSED",
        neverThrows(() => locks.query()),
      );
      await rejectsWith(
        "CLOSED",
        neverThrows(() => locks.evict(stage.name, 1n)),
      );
    },
  },
  {
    id: "close/scoped",
    title: "a scoped request that is under way learns it from its signal and rejects with LockLostError",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const running = locks.request(stage.name, async (lock) => {
        const closing = locks.close();
        await aborted(lock.signal);
        await closing;
      });
      const error = await rejectsWith("LOCK_LOST", within(stage.hangMs, "the scoped form", running));
      assert.ok(error instanceof LockLostError && error.reason === "closed");
    },
  },
];

/** All different, and each could be mistaken for something else by an engine that does not encode. */
const STRANGE = [
  ["a", "A", "a ", " a", "a\t", "a\n", "a\0", "a\0b", "\0", "ä", "a\u0308", "æ", "ae", "ß", "ss", "ı", "i", "İ"],
  [
    "a/b",
    "a/",
    "/a",
    "//",
    ".",
    "..",
    "../a",
    "a/../b",
    "a\\b",
    "%61",
    "%2Fa",
    "a%",
    "a_",
    "a*",
    "a?",
    "[a]",
    "#",
    ":",
  ],
  ["{a}", "{}", "{a}b", "'", '"', "`", "'; DROP TABLE locks; --", '") OR 1=1', "$1", "${a}", "\u{1f512}", "\u{1f511}"],
  ["constructor", "__proto__", "null", "undefined", "0", "-0".slice(1), "00", "1e1", "10", "x".repeat(512 - 60)],
].flat();

const naming: CaseDefinition[] = [
  {
    id: "names/apart",
    title: "names are data: strange ones are all different, all safe, and come back as they were",
    incidents: [34, 40],
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect({ ttlMs: 30_000 });
      const names = [...new Set(STRANGE)].map((each) => `${stage.name.slice(-9)}${each}`);
      const held = [];
      for (const name of names) {
        const lock = await locks.tryAcquire(name);
        assert.ok(lock, `${JSON.stringify(name)} is taken by another name`);
        held.push(lock);
      }
      for (const name of names) assert.equal(await locks.tryAcquire(name), null, `${JSON.stringify(name)} is free`);
      const listed = (await locks.query({ prefix: stage.name.slice(-9) })).held.map((each) => each.name);
      assert.deepEqual(listed.sort(), names.sort());
      await Promise.all(held.map((lock) => lock.release()));
    },
  },
  {
    id: "names/as-they-are",
    title: "the strange names on their own, at the beginning of which nothing protects",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      const names = [...new Set(STRANGE)];
      const tokens = await Promise.all(names.map((name) => locks.request(name, (lock) => lock.token)));
      assert.equal(tokens.length, names.length);
    },
  },
  {
    id: "names/length",
    title: "1 to 512 bytes of well-formed Unicode; anything else is refused before any I/O",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      for (const name of ["x".repeat(512), "\u{1f512}".repeat(128)]) {
        const lock = await locks.acquire(name, { waitMs: stage.hangMs });
        assert.equal(lock.name, name);
        assert.ok((await locks.query({ prefix: name })).held.some((each) => each.token === lock.token));
        await lock.release();
      }
      for (const name of ["", "x".repeat(513), "\u{1f512}".repeat(128) + "x", "lone \ud800", "\udc00"]) {
        await rejectsWith(
          "CONFIG",
          neverThrows(() => locks.acquire(name)),
        );
        await rejectsWith(
          "CONFIG",
          neverThrows(() => locks.tryAcquire(name)),
        );
        await rejectsWith(
          "CONFIG",
          neverThrows(() => locks.request(name, () => {})),
        );
      }
      for (const name of [undefined, 5, {}] as unknown as string[]) {
        assert.ok((await rejection(neverThrows(() => locks.acquire(name)))) instanceof TypeError);
      }
    },
  },
  {
    id: "names/hyphen",
    title: "a name that starts with a hyphen is refused with NotSupportedError",
    needs: {},
    body: async (stage) => {
      const locks = await stage.connect();
      for (const name of ["-", "-a"]) {
        for (const call of [() => locks.acquire(name), () => locks.request(name, () => {})]) {
          const error = await rejectsWith("NOT_SUPPORTED", neverThrows<unknown>(call));
          assert.ok(error instanceof NotSupportedError);
        }
      }
    },
  },
];

export const MANAGER: readonly CaseDefinition[] = [...connecting, ...querying, ...ending, ...naming];
