/**
 * Joins the modules of the command line into a few CommonJS files: loading seventy modules takes longer than
 * `holdfast run` itself, and an ES module that imports a part of Node makes Node load all that this part could ever
 * need, such as the streams and promises of `node:fs`; `require` does not. The library is not bundled.
 */
import { chmodSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build, transform, type Plugin } from "esbuild";

const FOLDER = "dist/cli";

/** Scripts (.sh, .sql, .lua) are read beside their module: in the bundle that place has to be written down. */
const places: Plugin = {
  name: "places",
  setup(build) {
    build.onLoad({ filter: /\.js$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      if (!text.includes("import.meta.url")) return { contents: text };
      const place = JSON.stringify(relative(FOLDER, path));
      return { contents: text.replaceAll("import.meta.url", `new URL(${place}, import.meta.url).href`) };
    });
  },
};

export async function bundleCommandLine(): Promise<void> {
  const separate = readdirSync(FOLDER).filter((name) => /\.(js|d\.ts)$/.test(name));
  const { outputFiles } = await build({
    entryPoints: [join(FOLDER, "main.js")],
    outdir: FOLDER,
    bundle: true,
    splitting: true,
    chunkNames: "[name]-[hash]",
    outExtension: { ".js": ".cjs" },
    format: "esm", // esbuild splits no other
    platform: "node",
    target: "node22",
    packages: "external",
    legalComments: "none",
    plugins: [places],
    write: false,
  });
  for (const name of separate) rmSync(join(FOLDER, name));
  for (const { path, text } of outputFiles) writeFileSync(path, await toCommonJs(text));
  chmodSync(join(FOLDER, "main.cjs"), 0o755);
}

/** Also without comments and long names: every byte of the file is read by the parser before `holdfast` begins. */
async function toCommonJs(module: string): Promise<string> {
  const { code } = await transform(module, {
    format: "cjs",
    platform: "node",
    target: "node22",
    minify: true,
    define: { "import.meta.url": "moduleUrl" },
  });
  const own = code.replaceAll(/import\(("\.\/[^"]+")\)/g, "Promise.resolve().then(()=>require($1))");
  const [, first = "", rest = ""] = /^(#!.*\n)?([\s\S]*)$/.exec(own) ?? [];
  return `${first}const moduleUrl=require("node:url").pathToFileURL(__filename).href;${rest}`;
}
