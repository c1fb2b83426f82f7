/** What a lock name may be, and how names and owners become bytes. */
import type { Clock } from "./clock.ts";

export const LONGEST_NAME_BYTES = 512;

/**
 * Checks a lock name: 1 to 512 bytes of well-formed Unicode. Returns what is wrong with it, or nothing.
 * Names are data: engines encode them injectively and never by their looks.
 */
export function nameProblem(name: string): string | undefined {
  if (name.length === 0) return "a lock name must not be empty";
  if (!name.isWellFormed()) return "a lock name must be well-formed Unicode (it has a lone surrogate)";
  const bytes = Buffer.byteLength(name);
  if (bytes > LONGEST_NAME_BYTES) {
    return `a lock name has at most ${LONGEST_NAME_BYTES} bytes in UTF-8, this one has ${bytes}: hash the long part`;
  }
  return undefined;
}

export const LONGEST_VALUE_BYTES = 4_096;

/** Checks what a request publishes: well-formed Unicode of at most 4 KiB. Returns what is wrong with it, or nothing. */
export function valueProblem(value: string): string | undefined {
  if (!value.isWellFormed()) return "a published value must be well-formed Unicode (it has a lone surrogate)";
  const bytes = Buffer.byteLength(value);
  if (bytes > LONGEST_VALUE_BYTES) {
    return `a published value has at most ${LONGEST_VALUE_BYTES} bytes in UTF-8, this one has ${bytes}: publish an address`;
  }
  return undefined;
}

const OWNER_BYTES = 16;

/** A new owner: 128 bits from the crypto generator, one per request, as 22 characters of base64url. Never logged. */
export function newOwner(clock: Clock): string {
  return Buffer.from(clock.randomBytes(OWNER_BYTES)).toString("base64url");
}
