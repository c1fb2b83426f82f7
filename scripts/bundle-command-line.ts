/**
 * Joins the modules of the command line into a few files: loading seventy modules takes longer than `holdfast run` itself.
 * The library is not bundled.
 */
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build, type Plugin } from "esbuild";

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
    format: "esm",
    platform: "node",
    target: "node22",
    packages: "external",
    legalComments: "none",
    plugins: [places],
    write: false,
  });
  for (const name of separate) rmSync(join(FOLDER, name));
  for (const { path, contents } of outputFiles) writeFileSync(path, contents);
}
