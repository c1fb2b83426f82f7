/** Paths of nodes: checked before they are sent, and put under the chroot. */
import { invalidArgument } from "./errors.ts";

/**
 * Throws unless `path` is what every server accepts: absolute, no empty, `.` or `..` part, no slash at the end, no
 * control characters, no surrogates (so nothing outside the basic plane), nothing in U+E000–U+F8FF or U+FFF0–U+FFFF.
 * Source: `PathUtils.validatePath` of Apache ZooKeeper.
 */
export function checkPath(path: string, sequential = false): void {
  if (typeof path !== "string" || !path.startsWith("/")) throw bad(path, "must start with a slash");
  if (path === "/") return;
  // The server appends digits to a sequential node's name before it looks at the path: `/queue/` is a fine prefix.
  const whole = sequential ? `${path}0` : path;
  if (whole.endsWith("/")) throw bad(path, "must not end with a slash");
  if (whole.includes("//")) throw bad(path, "has an empty part");
  if (/\/\.{1,2}(?:\/|$)/.test(whole)) throw bad(path, "has a part that is . or ..");
  if (FORBIDDEN.test(whole)) throw bad(path, "has a character that ZooKeeper refuses");
}

const FORBIDDEN = /[\p{Cc}\u{d800}-\u{f8ff}\u{fff0}-\u{10ffff}]/u;

function bad(path: string, why: string): Error {
  return invalidArgument(`the path ${JSON.stringify(path)} ${why}`);
}

/** A prefix that all paths of a client are put under; the client's user does not see it. */
export class Chroot {
  readonly #prefix: string;

  /** `prefix` is empty, "/" or a path. */
  constructor(prefix: string) {
    if (prefix !== "" && prefix !== "/") checkPath(prefix);
    this.#prefix = prefix === "/" ? "" : prefix;
  }

  /** `sequential`: the path is the start of a name, so "/" means a child of the chroot and not the chroot itself. */
  toServer(path: string, sequential = false): string {
    if (this.#prefix === "") return path;
    return path === "/" && !sequential ? this.#prefix : this.#prefix + path;
  }

  toClient(path: string): string {
    if (this.#prefix === "") return path;
    if (path === this.#prefix) return "/";
    return path.startsWith(`${this.#prefix}/`) ? path.slice(this.#prefix.length) : path;
  }
}
