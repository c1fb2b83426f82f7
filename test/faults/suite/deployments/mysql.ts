/** One MariaDB whose clock jumps now and then. */
import { startFaultProxy } from "../../../../servers/fault-proxy.ts";
import { startMariadb } from "../../../../servers/mariadb.ts";
import { engineFor, type Deployment, type EngineSpec } from "../deployment.ts";
import { networkFaults } from "../network.ts";
import { clockJumps, frozen, restarted, until } from "../server-faults.ts";
import { COMMAND_TIMEOUT_MS } from "./redis.ts";

const OURS = "SELECT id FROM information_schema.processlist WHERE user = 'holdfast'";

export async function mysqlDeployment(): Promise<Deployment> {
  const server = await startMariadb({ clock: true });
  const proxy = await startFaultProxy(server.port);
  const url = new URL(server.url);
  url.port = String(proxy.port);
  const spec: EngineSpec = { kind: "mysql", options: { url: url.href, commandTimeoutMs: COMMAND_TIMEOUT_MS } };
  const first = engineFor(spec);
  await first.open(); // makes the tables
  await first.close();
  return {
    engine: "mysql",
    what: "one MariaDB; its clock jumps",
    traits: first.traits,
    spec,
    ttlMs: 1_500,
    roundingMs: 2_500,
    faults: [
      frozen("servers frozen", () => server),
      restarted("servers killed and restarted", () => server),
      clockJumps("clock jumps", 2_500, () => server),
      {
        name: "sessions killed",
        async run() {
          for (const { id } of await server.query(OURS)) await server.query(`KILL ${String(id)}`).catch(() => {});
        },
      },
      ...networkFaults([proxy]),
    ],
    serving: () => until("MariaDB serves", async () => (await server.query("SELECT 1")).length === 1),
    leftovers: async () => {
      const [row] = await server.query("SELECT count(*) AS n FROM holdfast_requests");
      return Number(row?.["n"]) === 0 ? [] : [`${String(row?.["n"])} rows of requests`];
    },
    remains: async () => (await server.query(OURS)).map(({ id }) => `the session ${String(id)}`),
    stop: async () => {
      await proxy.close();
      await server.stop();
    },
  };
}
