/** Lock names and Redis keys. Injective, and one hash slot for all the keys of a name. */
import { hashSlot } from "../../redis/slot.ts";

/** What stands before everything of ours on the server; the least privileges in the docs name it. */
export const DEFAULT_PREFIX = "holdfast:";

/**
 * The first key of a name: `holdfast:{NAME}`, the others append to it. In NAME `%` and `}` are percent-encoded: `}` would
 * end the hash tag (at the very beginning, it would switch the tag off), and so no name's key is another's.
 */
export function keyOf(prefix: string, name: string): string {
  return `${prefix}{${encode(name)}}`;
}

/** The name whose first key this is, undefined for any other key. */
export function nameOf(prefix: string, key: string): string | undefined {
  if (!key.startsWith(`${prefix}{`) || !key.endsWith("}")) return undefined;
  return key
    .slice(prefix.length + 1, -1)
    .replaceAll("%7D", "}")
    .replaceAll("%25", "%");
}

/** A SCAN pattern for the first keys of the names that start with `start`. */
export function patternOf(prefix: string, start: string): string {
  return `${escapeGlob(`${prefix}{${encode(start)}`)}*}`;
}

/** Whether the keys of a name share a slot behind this prefix: a `{` in it may swallow the hash tag. */
export function keepsSlots(prefix: string): boolean {
  const key = keyOf(prefix, "name");
  return hashSlot(key) === hashSlot(`${key}:d`);
}

function encode(name: string): string {
  return /[%}]/.test(name) ? name.replaceAll("%", "%25").replaceAll("}", "%7D") : name;
}

function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`);
}
