/** Access control lists: who may do what with one node. Nothing is inherited from the parent. */
import { createHash } from "node:crypto";
import type { JuteReader, JuteWriter } from "./jute.ts";
import { invalidArgument } from "./errors.ts";

/** Permissions are bits: add them up with `|`. */
export const Permission = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

export interface AclEntry {
  readonly permissions: number;
  /** "world", "auth", "digest", "ip", "x509", "sasl" … */
  readonly scheme: string;
  /** What it means depends on the scheme. */
  readonly id: string;
}

export type Acl = readonly AclEntry[];

/** Everybody may do everything: the default of a session without credentials. */
export const OPEN_ACL: Acl = [{ permissions: Permission.all, scheme: "world", id: "anyone" }];
/** Everybody may read. */
export const READ_ACL: Acl = [{ permissions: Permission.read, scheme: "world", id: "anyone" }];
/** Those that the creating session authenticated as may do everything: the default of a session with credentials. */
export const CREATOR_ACL: Acl = [{ permissions: Permission.all, scheme: "auth", id: "" }];

/** The entry's id for scheme "digest": the server stores a hash of the password, SHA-1 by its default. */
export function digestId(user: string, password: string): string {
  if (user.includes(":")) throw invalidArgument("a digest user name has no colon");
  return `${user}:${createHash("sha1").update(`${user}:${password}`).digest("base64")}`;
}

const SMALLEST_ENTRY_BYTES = 12;

export function writeAcl(writer: JuteWriter, acl: Acl): void {
  writer.vector(acl, (out, { permissions, scheme, id }) => out.int32(permissions).string(scheme).string(id));
}

export function readAcl(reader: JuteReader): AclEntry[] {
  return reader.vector(SMALLEST_ENTRY_BYTES, (entry) => ({
    permissions: entry.int32(),
    scheme: entry.string(),
    id: entry.string(),
  }));
}
