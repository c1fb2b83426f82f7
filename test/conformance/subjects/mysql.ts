/** The mysql engine under test, on a private MariaDB: by URL, and through a pool that exists already. */
import { createPool } from "mysql2/promise";
import { startFaultProxy, type FaultProxy } from "../../../servers/fault-proxy.ts";
import { startMariadb, type MariadbServer } from "../../../servers/mariadb.ts";
import { systemClock, type Clock } from "../../../src/engine/clock.ts";
import type { Traits } from "../../../src/engine/engine.ts";
import { LeaseEngine } from "../../../src/engine/lease-engine.ts";
import type { LeaseStore } from "../../../src/engine/lease-store.ts";
import { fromUrl, mysqlStore, type MysqlOptions } from "../../../src/engines/mysql/index.ts";
import { connect, type LeaseOptions, type LockManager } from "../../../src/index.ts";
import type { Subject } from "../../../src/testing/subject.ts";

const TTL_MS = 2_000;
/** Shorter than a lease, so that lost replies are noticed in time. */
const COMMAND_TIMEOUT_MS = 1_200;

export const MYSQL_TRAITS: Traits = {
  engine: "mysql",
  fair: true,
  shared: true,
  limits: true,
  steal: true,
  minHold: true,
  lease: "lease",
  bells: "push",
  scope: "network",
  survivesRestart: true,
  survivesFailover: false,
  survivesClockJump: false,
};

/** How the engine is told where the server is; `port` is that of the proxy in front of it. */
type Reach = (server: MariadbServer, port: number) => { options: MysqlOptions; end(): Promise<void> };

const byUrl: Reach = (server, port) => ({
  options: { url: throughPort(server.url, port) },
  end: async () => {},
});

const byPool: Reach = (server, port) => {
  const pool = createPool(throughPort(server.url, port));
  return { options: { pool }, end: () => pool.end() };
};

function throughPort(url: string, port: number): string {
  const through = new URL(url);
  through.port = String(port);
  return through.href;
}

function mysqlSubject(name: string, reach: Reach): Subject {
  let server: MariadbServer | undefined;
  let proxy: FaultProxy | undefined;
  let reached: ReturnType<Reach> | undefined;
  let bellsDropped = false;
  const running = (): MariadbServer => {
    if (server === undefined) throw new Error("the server has not been started");
    return server;
  };
  const open = (clock: Clock, defaults?: LeaseOptions): Promise<LockManager> => {
    if (reached === undefined) throw new Error("the server has not been started");
    const store = mysqlStore({ ...reached.options, clock, commandTimeoutMs: COMMAND_TIMEOUT_MS });
    return connect(
      new LeaseEngine(
        deafWhile(store, () => bellsDropped),
        clock,
      ),
      defaults,
    );
  };
  return {
    name,
    traits: MYSQL_TRAITS,
    async start() {
      server = await startMariadb();
      proxy = await startFaultProxy(server.port);
      reached = reach(server, proxy.port);
    },
    async stop() {
      await reached?.end();
      await proxy?.close();
      await server?.stop();
    },
    connect: (defaults) => open(systemClock, defaults),
    url: () => running().url,
    hooks: {
      connectWithClock: open,
      connectNowhere: () => connect(fromUrl("mysql://127.0.0.1:1/nowhere")),
      freezeServer: async () => running().freeze(),
      thawServer: async () => running().thaw(),
      async cutConnections() {
        proxy?.reset();
      },
      restartServer: () => running().restart(),
      async killServer() {
        await running().kill();
        return () => running().restart();
      },
      async dropBells() {
        bellsDropped = true;
        return async () => {
          bellsDropped = false;
        };
      },
      async loseReplies() {
        proxy?.set({ toClient: "drop" });
        return async () => {
          // What lost a reply is of no use any more, and the engine has given it up or will.
          proxy?.set({ toClient: "pass" });
        };
      },
      async countCommands() {
        // Each packet is one transaction or one statement; reads inside transactions are counted on top.
        const counters = "'Com_begin', 'Com_select', 'Com_insert'";
        const rows = await running().query(`SHOW GLOBAL STATUS WHERE Variable_name IN (${counters})`);
        return rows.reduce((sum, row) => sum + Number(row["Value"]), 0);
      },
    },
    ttlMs: TTL_MS,
    whyNot: { loseSession: "its leases are its own, not a session's" },
  };
}

/** The store, with its hints thrown away while `deaf` says so. */
function deafWhile(store: LeaseStore, deaf: () => boolean): LeaseStore {
  const open = store.open.bind(store);
  store.open = (events) =>
    open({
      granted: (owner, token) => !deaf() && events.granted(owner, token),
      check: (owner) => !deaf() && events.check(owner),
      checkAll: () => !deaf() && events.checkAll(),
    });
  return store;
}

export const subjects: readonly Subject[] = [
  mysqlSubject("mysql by URL, MariaDB", byUrl),
  mysqlSubject("mysql through a pool, MariaDB", byPool),
];
