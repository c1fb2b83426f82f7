/** `holdfast ls [PREFIX]`: the locks that are held or waited for. */
import { type Arguments, UsageError } from "./arguments.ts";
import { inOrder, toJson, toTable } from "./lock-table.ts";
import { lookOf, print, printJson } from "./output.ts";
import { say } from "./report.ts";
import { chooseStore, openLocks } from "./store.ts";

const MOST = 100_000;

export async function ls(given: Arguments): Promise<number> {
  if (given.positionals.length > 1) throw new UsageError("takes one PREFIX", ["ls", given.positionals[0] ?? ""]);
  const locks = await openLocks(chooseStore(given, process.env));
  try {
    const infos = inOrder(await locks.query({ prefix: given.positionals[0], limit: MOST }));
    if (given.has("json")) await printJson(infos.map((info) => toJson(info, Date.now())));
    else if (infos.length > 0) await print(toTable(infos, lookOf(process.env)));
    if (infos.length === MOST) say(`there are more than these ${MOST}: give a PREFIX`);
    return 0;
  } finally {
    await locks.close();
  }
}
