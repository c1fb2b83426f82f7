/** The rules of the house that a compiler does not hold: arrows between folders, one seam for time, sizes, names. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, extname, join, relative } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
const LONGEST_FILE_LINES = 500;

/** What git tracks or would track. */
const files = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .split("\0")
  .filter((path) => path !== "" && existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isFile());

const source = files.filter((path) => path.startsWith("src/") && path.endsWith(".ts"));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** The lines that hold code: without comment lines and what follows ` // `. The numbers stay those of the file. */
function codeLines(text: string): { line: number; code: string }[] {
  return text
    .split("\n")
    .map((code, index) => ({ line: index + 1, code: code.replace(/\s\/\/ .*$/, "") }))
    .filter(({ code }) => !/^\s*(\*|\/\/|\/\*)/.test(code));
}

interface Import {
  readonly target: string;
  /** `import("…")`: loaded only when asked for. */
  readonly dynamic: boolean;
}

function importsOf(text: string): Import[] {
  const code = codeLines(text)
    .map((each) => each.code)
    .join("\n");
  const found = code.matchAll(/(?:^(?:import|export)\b[^;"]*?\bfrom\s*|^import\s*|\bimport\s*(\())\s*"([^"\n]+)"/gm);
  return [...found].map(([, bracket, target = ""]) => ({ target, dynamic: bracket !== undefined }));
}

/** `src/engines/redis/bell.ts` -> `engines/redis`; `src/index.ts` -> `index`; `src/lock/options.ts` -> `lock`. */
function partOf(path: string): string {
  const [, first = "", second = "", third] = path.split("/");
  if (second === "") return basename(first, ".ts");
  return first === "engines" ? (third === undefined ? "engines" : `engines/${second}`) : first;
}

/**
 * Which parts each part may import; itself always. `engines` is the registry, `engines/` any single engine.
 * Arrows point down: cli, lab, dashboard → index → lock, engines → engine, redis, zookeeper.
 */
const ARROWS: Record<string, readonly string[]> = {
  engine: [],
  redis: ["engine/clock.ts"],
  zookeeper: ["engine/clock.ts"],
  telemetry: ["engine"],
  fence: ["engine", "redis", "zookeeper"],
  lock: ["engine", "telemetry"],
  "engines/": ["engine", "redis", "zookeeper", "telemetry"],
  engines: ["engine", "engines/"],
  index: ["engine", "engines", "lock", "telemetry"],
  testing: ["index", "engine", "engines", "engines/", "fence", "zookeeper"],
  cli: ["index", "engine", "engines", "engines/", "fence", "zookeeper", "telemetry", "dashboard", "lab"],
  dashboard: ["index", "engine", "telemetry"],
  lab: ["index", "engine", "engines/", "fence", "redis", "zookeeper", "testing"],
};

function mayImport(from: string, target: string): boolean {
  const part = partOf(from);
  const targetPart = partOf(target);
  if (part === targetPart) return true;
  const allowed = ARROWS[part.startsWith("engines/") ? "engines/" : part] ?? [];
  return (
    allowed.includes(targetPart) ||
    allowed.includes(target.replace(/^src\//, "")) ||
    (targetPart.startsWith("engines/") && allowed.includes("engines/"))
  );
}

test("arrows between the folders point down", () => {
  const wrong = source.flatMap((from) =>
    importsOf(read(from))
      .filter(({ target }) => target.startsWith("."))
      .map(({ target }) => relative(ROOT, join(ROOT, dirname(from), target)))
      .filter((target) => !mayImport(from, target))
      .map((target) => `${from} imports ${target}`),
  );
  assert.deepEqual(wrong, []);
});

test("every folder of the source has its arrows", () => {
  const unknown = [...new Set(source.map(partOf))].filter((part) => !part.startsWith("engines/") && !(part in ARROWS));
  assert.deepEqual(unknown, []);
});

test("clients of servers are never imported by the core, and elsewhere only when asked for", () => {
  const { dependencies = {}, peerDependencies = {} } = JSON.parse(read("package.json")) as Record<
    "dependencies" | "peerDependencies",
    Record<string, string> | undefined
  >;
  const allowed = (from: string, { target, dynamic }: Import): boolean => {
    if (target.startsWith(".") || target.startsWith("node:")) return true;
    const name = target
      .split("/")
      .slice(0, target.startsWith("@") ? 2 : 1)
      .join("/");
    if (name in peerDependencies) return dynamic && /^src\/(engines|redis|fence|telemetry)\//.test(from);
    return name in dependencies && /^src\/(cli|lab|dashboard)\//.test(from);
  };
  const wrong = source.flatMap((from) =>
    importsOf(read(from))
      .filter((each) => !allowed(from, each))
      .map(({ target }) => `${from} imports ${target}`),
  );
  assert.deepEqual(wrong, []);
});

const BANNED: readonly [name: string, pattern: RegExp][] = [
  ["the wall clock", /\bDate\.now\b|\bnew Date\(\)|\bDate\(\)/],
  ["the monotonic clock", /\bperformance\.now\b|\bimport\b.*\bperformance\b/],
  ["a timer", /\bsetTimeout\b|\bsetInterval\b|\bAbortSignal\.timeout\b|"(node:)?timers\/promises"/],
  ["randomness", /\bMath\.random\b|\brandomUUID\b|\bgetRandomValues\b|\bimport\b.*\brandom(Bytes|Int|Fill)/],
];
/** `clock.ts` is the seam itself; programs that a person runs have no simulation to obey. */
const MAY_READ_CLOCKS = /^src\/(engine\/clock\.ts$|cli\/|lab\/|dashboard\/)/;
/** Letting the event loop turn measures no time. */
const YIELDS = /^import \{ setImmediate(?: as \w+)? \} from "node:timers\/promises";$/;

test("clocks, timers and randomness are read in engine/clock.ts and nowhere else", () => {
  const wrong = source
    .filter((path) => !MAY_READ_CLOCKS.test(path))
    .flatMap((path) =>
      codeLines(read(path)).flatMap(({ line, code }) =>
        BANNED.filter(([, pattern]) => pattern.test(code) && !YIELDS.test(code)).map(
          ([name]) => `${path}:${line} reads ${name}: ${code.trim()}`,
        ),
      ),
    );
  assert.deepEqual(wrong, []);
});

test("a file is read in one go: never over 500 lines", () => {
  const wrong = files
    .filter((path) => /\.([cm]?[jt]sx?|lua|sql|sh|css|html|c)$/.test(path))
    .map((path) => ({ path, lines: read(path).split("\n").length - 1 }))
    .filter(({ lines }) => lines > LONGEST_FILE_LINES)
    .map(({ path, lines }) => `${path} has ${lines} lines`);
  assert.deepEqual(wrong, []);
});

const NAMELESS = new Set(["util", "utils", "helper", "helpers", "common", "misc", "types", "lib", "shared", "stuff"]);

test("files are named after what they are, in kebab-case", () => {
  const wrong = files
    .filter((path) => /^(src|test|servers|bench|scripts|ui)\/.*\.(ts|tsx|lua|sql|sh)$/.test(path))
    .filter((path) => {
      const stem = basename(path, extname(path)).replace(/\.(test|config|d|browser)$/, "");
      return NAMELESS.has(stem) || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(stem);
    });
  assert.deepEqual(wrong, []);
});

test("no folder of the source is a drawer for everything", () => {
  const folders = new Set(source.flatMap((path) => dirname(path).split("/")));
  assert.deepEqual(
    [...folders].filter((folder) => NAMELESS.has(folder)),
    [],
  );
});

/** Directories that exist on one machine only, and hosts that packages were downloaded from. */
const TRACES: readonly RegExp[] = [
  /(?<![\w.~-])\/(work|home\/\w+|Users\/\w+)\//,
  /\b(registry|artifactory|nexus|pypi|npm-?proxy|mirrors?)(\.[a-z0-9-]+){2,}\b/i,
  /"resolved": "(https?|file):/,
];

test("nothing tracked tells where it was written or downloaded", () => {
  // A home directory of one segment, as root has, is a word that texts may use.
  const own = [ROOT, homedir()].filter((path) => path.split("/").length > 2).map((path) => `${path}/`);
  const wrong = files
    .filter((path) => !/\.(png|jpg|ico|woff2?|gz)$/.test(path))
    .flatMap((path) =>
      read(path)
        .split("\n")
        .map((text, index) => ({ text, where: `${path}:${index + 1}` }))
        .filter(({ text }) => own.some((each) => text.includes(each)) || TRACES.some((trace) => trace.test(text)))
        .map(({ text, where }) => `${where}: ${text.trim().slice(0, 120)}`),
    );
  assert.deepEqual(wrong, []);
});

test("these rules notice what breaks them", () => {
  assert.equal(mayImport("src/lock/held-lock.ts", "src/engines/memory/index.ts"), false);
  assert.equal(mayImport("src/engines/redlock/index.ts", "src/engines/redis/index.ts"), false);
  assert.equal(mayImport("src/engines/redis/index.ts", "src/lock/held-lock.ts"), false);
  assert.equal(mayImport("src/engine/lease.ts", "src/redis/client.ts"), false);
  assert.equal(mayImport("src/redis/client.ts", "src/engine/errors.ts"), false);
  assert.equal(mayImport("src/redis/client.ts", "src/engine/clock.ts"), true);
  assert.equal(mayImport("src/cli/run.ts", "src/index.ts"), true);
  assert.equal(mayImport("src/index.ts", "src/cli/run.ts"), false);
  assert.deepEqual(importsOf('import "./a.ts";\n// from "./no.ts"\nawait import("./b.ts");\n'), [
    { target: "./a.ts", dynamic: false },
    { target: "./b.ts", dynamic: true },
  ]);
  assert.deepEqual(importsOf('import {\n  x,\n} from "./c.ts";\nexport * from "./d.ts";'), [
    { target: "./c.ts", dynamic: false },
    { target: "./d.ts", dynamic: false },
  ]);
  const banned = (code: string): boolean => BANNED.some(([, pattern]) => pattern.test(code));
  assert.ok(banned("const now = Date.now();") && banned("globalThis.setTimeout(run)") && banned("Math.random()"));
  assert.ok(banned('import { setTimeout as sleep } from "node:timers/promises";'));
  assert.ok(!banned("clock.randomBytes(16)") && !banned("lock.expiresAt.setTime(0)"));
});
