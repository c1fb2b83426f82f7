/** Which store the locks live in, and the connection to it. */
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import type { SqliteOptions } from "../engines/sqlite/index.ts";
import { connect, type LockManager } from "../index.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { EXIT, Failure } from "./exit-codes.ts";
import { keepSecret, redactUrl } from "./secrets.ts";

export interface Store {
  readonly url: string;
  /** May be shown. */
  readonly shown: string;
  /** The default: this user on this machine only. */
  readonly isDefault: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** `--url`, else `--url-file`, else HOLDFAST_URL, else SQLite in the user's state directory. Errors: `Failure` 64, 78. */
export function chooseStore(given: Arguments, environment: Environment): Store {
  const url = given.text("url");
  const file = given.text("url-file");
  if (url !== undefined && file !== undefined) throw new UsageError("--url and --url-file exclude each other");
  const chosen = url ?? (file === undefined ? environment["HOLDFAST_URL"] : readUrlFile(file));
  if (chosen !== undefined && chosen !== "") {
    keepSecret(chosen);
    // The words of a process are for everybody to see (ps): ours without the secret, from now on.
    if (url !== undefined && redactUrl(url) !== url) process.title = `holdfast ${given.command.name}`;
    return { url: chosen, shown: redactUrl(chosen), isDefault: false };
  }
  const path = join(stateDirectory(environment), "holdfast", "locks.db");
  return { url: `sqlite:${encodeURI(path).replaceAll(/[?#]/g, encodeURIComponent)}`, shown: path, isDefault: true };
}

function readUrlFile(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new Failure(EXIT.config, `cannot read --url-file: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (text === "" || /\s/.test(text))
    throw new Failure(EXIT.config, `--url-file ${file} must hold one URL and nothing else`);
  return text;
}

/** Where programs keep what should survive a restart: the XDG base directories, and the customs of macOS and Windows. */
function stateDirectory(environment: Environment): string {
  const { XDG_STATE_HOME: xdg, LOCALAPPDATA: local } = environment;
  // The specification: a relative path is invalid and is ignored.
  if (xdg !== undefined && isAbsolute(xdg)) return xdg;
  if (process.platform === "win32") return local ?? join(homedir(), "AppData", "Local");
  if (process.platform === "darwin") return join(homedir(), "Library", "Application Support");
  return join(homedir(), ".local", "state");
}

/** In parentheses, after what concerns a store that others may not share. */
export function scopeOf(store: Store): string {
  return store.isDefault ? ` (locks of this user on this machine only: ${store.shown})` : "";
}

/**
 * Connects. What the embedded engine is told: `guardedPid`, the process whose life keeps what is held here taken
 * (elsewhere the lease alone does), and whether closing is the last deed of this process. Errors: those of `connect`.
 */
export async function openLocks(store: Store, embedded: Omit<SqliteOptions, "path"> = {}): Promise<LockManager> {
  if (!/^sqlite:/i.test(store.url)) return await connect(store.url);
  if (store.isDefault) makeStateDirectory(dirname(store.shown));
  const { fromUrl } = await withoutExperimentWarning(() => import("../engines/sqlite/index.ts"));
  return await connect(fromUrl(store.url, embedded));
}

/** Older versions of Node say on loading SQLite that it is an experiment: no business of who runs a command. */
async function withoutExperimentWarning<T>(load: () => Promise<T>): Promise<T> {
  const node = process as unknown as { emitWarning: (...given: readonly unknown[]) => void };
  const before = node.emitWarning;
  node.emitWarning = (...given) => {
    if (!String(given[0]).startsWith("SQLite is an experimental feature")) Reflect.apply(before, process, given);
  };
  try {
    return await load();
  } finally {
    node.emitWarning = before;
  }
}

/** The users of daemons often have a home that does not exist. */
function makeStateDirectory(path: string): void {
  try {
    makeDirectories(path);
  } catch (cause) {
    const problem = `the directory of the default store, ${path}, cannot be made (${codeOf(cause)})`;
    throw new Failure(EXIT.config, `${problem}: set XDG_STATE_HOME, or say with --url where the locks live`, { cause });
  }
}

/** `mkdir -p`. Node's own never returns where the kernel answers ENOENT for a parent that exists, as in /proc. */
function makeDirectories(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    const parent = dirname(path);
    if (codeOf(error) !== "ENOENT" || parent === path || existsSync(parent)) throw error;
    makeDirectories(parent);
    makeDirectories(path);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
