/**
 * Where a lock name stands on the server: one segment below the root, from which the name can be read again. Letters,
 * digits, `-` and `_` stand for themselves, every other byte of UTF-8 is `%XX`: no name can reach another's node, no
 * character is one that ZooKeeper refuses, and `~` is free for our own purposes.
 */

const PLAIN = /^[\w-]+$/;
const SEGMENT = /^((?:[\w-]|%[\dA-F]{2})+)(?:~([1-9]\d*))?$/;

/** The container of the requests for `name`. Generation 0 has no number; see generation.ts. */
export function lockPath(root: string, name: string, generation = 0): string {
  const suffix = generation === 0 ? "" : `~${generation}`;
  return `${root === "/" ? "" : root}/${encodeName(name)}${suffix}`;
}

export function encodeName(name: string): string {
  if (PLAIN.test(name)) return name;
  let encoded = "";
  for (const byte of Buffer.from(name)) {
    const character = String.fromCharCode(byte);
    encoded += PLAIN.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

/** The lock name of a child of the root; undefined when it is none of ours. */
export function nameOf(segment: string): string | undefined {
  const encoded = SEGMENT.exec(segment)?.[1];
  if (encoded === undefined) return undefined;
  try {
    const name = decodeURIComponent(encoded);
    return encodeName(name) === encoded ? name : undefined;
  } catch {
    return undefined; // bytes that are no UTF-8
  }
}
