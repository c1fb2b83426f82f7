/** A session that sleeps on one bell, for all requests of this process that wait for it. */
import type { Row } from "./client.ts";
import { packet } from "./packet.ts";
import { rowSets } from "./rows.ts";
import type { Session } from "./session.ts";

/** How long one sleep lasts, seconds; then the bell is slept on again. Short enough for a firewall's idea of an idle connection. */
const SLEEP_S = 20;

/** How a listener's work ended: the bell rang (with what was read behind it), nobody waits any more, or it failed. */
export type Rang =
  { readonly outcome: "rang"; readonly rows: readonly Row[] } | { readonly outcome: "idle" | "failed" };

/**
 * Sleeps until the bell of the owners' predecessor is free, and reads in the same packet who of them is granted. One
 * packet every 20 s. `owners` may grow and shrink meanwhile.
 */
export async function listen(session: Session, bell: string, owners: ReadonlySet<string>): Promise<Rang> {
  while (owners.size > 0) {
    const values = { bell, seconds: SLEEP_S, owners: [...owners].map((owner) => Buffer.from(owner)) };
    const results = await session.run(packet(["listen", "heard"], values), true).catch(() => undefined);
    if (results === undefined) return { outcome: "failed" };
    const [slept, granted] = rowSets(results);
    const rung = slept?.[0]?.["rung"];
    if (rung === 1) return { outcome: "rang", rows: granted ?? [] };
    // NULL: the server refused, or somebody killed the statement (MariaDB; MySQL makes that an error).
    if (rung !== 0) return { outcome: "failed" };
  }
  return { outcome: "idle" };
}
