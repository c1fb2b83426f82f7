/** `holdfast show NAME`: its queue. */
import type { Arguments } from "./arguments.ts";
import { inOrder, toJson, toTable } from "./lock-table.ts";
import { readName } from "./run-options.ts";
import { lookOf, print, printJson } from "./output.ts";
import { printable } from "./shell-words.ts";
import { chooseStore, openLocks } from "./store.ts";

export async function show(given: Arguments): Promise<number> {
  const name = readName(given, 1);
  const locks = await openLocks(chooseStore(given, process.env));
  try {
    const infos = inOrder(await locks.query({ name }));
    if (given.has("json")) await printJson(infos.map((info) => toJson(info, Date.now())));
    else if (infos.length > 0) await print(toTable(infos, lookOf(process.env)));
    else await print(`${printable(name)} is free\n`);
    return 0;
  } finally {
    await locks.close();
  }
}
