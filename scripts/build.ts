/** Compiles `src` to `dist`, copies the scripts (.lua, .sql) that stand beside the code, and bundles the command line. */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { bundleCommandLine } from "./bundle-command-line.ts";

rmSync("dist", { recursive: true, force: true });
const compiler = spawnSync("node_modules/.bin/tsc", ["-p", "tsconfig.build.json"], { stdio: "inherit" });
if (compiler.status !== 0) process.exit(compiler.status ?? 1);
cpSync("src", "dist", {
  recursive: true,
  filter: (path) => !/\.[a-z]+$/i.test(path) || /\.(lua|sql|sh)$/.test(path),
});
await bundleCommandLine();
