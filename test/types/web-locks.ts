/** The types of the library against those of the Web Locks API. Compiled, never run. */
import { connect, type HeldLock, type LockInfo, type LockManager } from "../../src/index.ts";

const locks: LockManager = await connect("memory:");

// Code that was written for `navigator.locks` takes ours.
const asBrowserManager: globalThis.LockManager = locks;
async function writtenForTheBrowser(manager: globalThis.LockManager): Promise<string> {
  const { held = [], pending = [] } = await manager.query();
  return await manager.request("name", { mode: "shared", ifAvailable: true }, async (lock) => {
    return `${lock?.name} ${lock?.mode} ${held.length} ${pending.length}`;
  });
}
export const text: string = await writtenForTheBrowser(locks);
export const swapped: globalThis.LockManager = Math.random() > 0.5 ? navigator.locks : asBrowserManager;

// A handle and an entry of query() are what the browser calls Lock and LockInfo.
declare const handle: HeldLock;
export const asBrowserLock: globalThis.Lock = handle;
declare const info: LockInfo;
export const asBrowserInfo: globalThis.LockInfo = info;
