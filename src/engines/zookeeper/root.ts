/** The root of all lock names, and the recipe that everybody below it uses. */
import { ConfigError } from "../../engine/errors.ts";
import type { Acl, ZooKeeper } from "../../zookeeper/index.ts";
import { hasCode } from "./failure.ts";

export type Recipe = "queue" | "race";

/** A child of the root that no lock name can be. */
const RECIPE = "~recipe";

/**
 * Makes the root where it is missing. Rejects with `ConfigError` when others use the other recipe there: two recipes do not
 * exclude each other.
 */
export async function prepareRoot(zk: ZooKeeper, root: string, acl: Acl | undefined, recipe: Recipe): Promise<void> {
  const parts = root.split("/").filter((part) => part !== "");
  const paths = parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
  const marker = `${root === "/" ? "" : root}/${RECIPE}`;
  if ((await zk.exists(marker)) === null) {
    for (const path of paths) await make(zk, path, "", acl);
    await make(zk, marker, recipe, acl);
  }
  const found = (await zk.getData(marker)).data.toString();
  if (found === recipe) return;
  const meaning = found === "race" ? "fair: false" : found === "queue" ? "fair: true" : JSON.stringify(found);
  throw new ConfigError(`the locks below ${root} are used with ${meaning}; all processes must use the same`);
}

async function make(zk: ZooKeeper, path: string, data: string, acl: Acl | undefined): Promise<void> {
  try {
    await zk.create(path, data, { acl });
  } catch (error) {
    // NO_AUTH: we may not create beside others' nodes; the path may be there all the same.
    if (hasCode(error, "NODE_EXISTS") || (hasCode(error, "NO_AUTH") && (await zk.exists(path)) !== null)) return;
    throw error;
  }
}
