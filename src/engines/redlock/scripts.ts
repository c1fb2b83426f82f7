/** The commands of a node: Lua scripts that stand beside this file, and the keys that they use. */
import { readFileSync } from "node:fs";
import { createScript, type Script } from "../../redis/script.ts";

function load(name: string): Script {
  return createScript(readFileSync(new URL(`scripts/${name}.lua`, import.meta.url), "utf8"));
}

export const ACQUIRE: Script = load("acquire");
export const RAISE: Script = load("raise");
export const RENEW: Script = load("renew");
export const RELEASE: Script = load("release");
export const ANNOUNCE: Script = load("announce");
export const EVICT: Script = load("evict");
export const INSPECT: Script = load("inspect");
export const ADMIT: Script = load("admit");
export const NOTE: Script = load("note");

const PREFIX = "holdfast:redlock:";
/** What the node knows of itself and of the deployment: run, ttl, nodes, high, floor, floor_at. */
export const NODE_KEY: string = `${PREFIX}node`;
export const LOCK_PREFIX: string = `${PREFIX}lock:`;
export const BELL_PREFIX: string = `${PREFIX}bell:`;

export function lockKey(name: string): string {
  return LOCK_PREFIX + name;
}

export const WAIT_PREFIX: string = `${PREFIX}wait:`;

export function waitKey(name: string): string {
  return WAIT_PREFIX + name;
}

/** The running wait for an incarnation, and the mark that it was begun. */
export function noteKeys(subject: string): [string, string] {
  return [`${PREFIX}restart:${subject}`, `${PREFIX}restart-seen:${subject}`];
}
