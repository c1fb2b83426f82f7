/**
 * Joins the modules of the command line into few CommonJS files: loading seventy modules takes longer than
 * `holdfast run` itself, and an ES module that imports a part of Node makes Node load all that this part could ever
 * need, such as the streams and promises of `node:fs`; `require` does not. The library is not bundled.
 *
 * `main.cjs` holds the commands; each engine is a file of its own, loaded when a URL asks for it, which takes what it
 * shares with the commands (`src/engine`; by the rule of the folders nothing else) from `main.cjs`.
 */
import { chmodSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { build, type BuildOptions, type Plugin } from "esbuild";

const FOLDER = "dist/cli";
const SHARED = "dist/engine";
const ENGINE = /[/\\]engines[/\\]([a-z]+)[/\\]index\.js$/;
/** Under this name `main.cjs` exports what it shares. */
const MAIN = "./main.cjs";

/** Scripts (.sh, .sql, .lua) are read beside their module: in the bundle that place has to be written down. */
function withPlace(text: string, path: string): string {
  const place = JSON.stringify(relative(FOLDER, path));
  return text.replaceAll("import.meta.url", `new URL(${place}, import.meta.url).href`);
}

/** Commands that are there from the start: esbuild would put each into a function, which is then parsed twice. */
function withoutWaiting(text: string): string {
  const imports: string[] = [];
  const changed = text.replaceAll(/await import\(("\.\/[^"]+")\)/g, (_, path: string) => {
    imports.push(`import * as at${imports.length} from ${path};`);
    return `at${imports.length - 1}`;
  });
  return [changed, ...imports].join("\n");
}

const ownModules: Plugin = {
  name: "own-modules",
  setup(build) {
    build.onLoad({ filter: /\.js$/ }, ({ path }) => {
      const text = withPlace(readFileSync(path, "utf8"), path);
      return { contents: dirname(path) === resolve(FOLDER) ? withoutWaiting(text) : text };
    });
  },
};

/** For `main.cjs`: an engine that is loaded when a URL asks for it. */
const enginesApart: Plugin = {
  name: "engines-apart",
  setup(build) {
    build.onResolve({ filter: /\/index\.js$/ }, ({ kind, path, resolveDir }) => {
      const [, name] = ENGINE.exec(resolve(resolveDir, path)) ?? [];
      return kind === "dynamic-import" && name !== undefined ? { path: `./${name}.cjs`, external: true } : undefined;
    });
  },
};

/** For the engines: one copy of each class, or `instanceof` would not know an error again. */
const sharedWithMain: Plugin = {
  name: "shared-with-main",
  setup(build) {
    build.onResolve({ filter: /\.js$/ }, ({ path, resolveDir }) => {
      const file = resolve(resolveDir, path);
      return dirname(file) === resolve(SHARED) ? { path: basename(file), namespace: "shared" } : undefined;
    });
    build.onLoad({ filter: /./, namespace: "shared" }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(MAIN)})[${JSON.stringify(path)}]`,
      resolveDir: FOLDER,
    }));
  },
};

/** Without comments and long names: every byte of the file is read by the parser before `holdfast` begins. */
const COMMON = {
  bundle: true,
  format: "cjs",
  platform: "node",
  target: "node22",
  packages: "external",
  minify: true,
  legalComments: "none",
  supported: { "dynamic-import": false }, // `require` in its place: it loads less of Node
  define: { "import.meta.url": "moduleUrl" },
  external: [MAIN],
} satisfies BuildOptions;
const MODULE_URL = `const moduleUrl=require("node:url").pathToFileURL(__filename).href;`;

export async function bundleCommandLine(): Promise<void> {
  const separate = readdirSync(FOLDER).filter((name) => /\.(js|d\.ts)$/.test(name));
  const shared = readdirSync(SHARED).filter((name) => name.endsWith(".js"));
  // Exported too, or the package's "sideEffects: false" would leave it out.
  const main = `export * as main from "./main.js";`;
  const exported = shared.map((name) => `export * as "${name}" from "../engine/${name}";`);
  await build({
    ...COMMON,
    stdin: { contents: [main, ...exported].join("\n"), resolveDir: FOLDER },
    outfile: join(FOLDER, MAIN),
    banner: { js: `#!/usr/bin/env node\n${MODULE_URL}` },
    plugins: [enginesApart, ownModules],
  });
  const engines = readdirSync("dist/engines", { withFileTypes: true }).filter((each) => each.isDirectory());
  await build({
    ...COMMON,
    entryPoints: engines.map(({ name }) => ({ in: `dist/engines/${name}/index.js`, out: name })),
    outdir: FOLDER,
    outExtension: { ".js": ".cjs" },
    banner: { js: MODULE_URL },
    plugins: [sharedWithMain, ownModules],
  });
  for (const name of separate) rmSync(join(FOLDER, name));
  chmodSync(join(FOLDER, MAIN), 0o755);
}
