/** The completion scripts, each in its own shell. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ensureDebianPackage } from "../../servers/debian-packages.ts";
import type { TemporaryDirectory } from "../../servers/exit-cleanup.ts";
import { cleanEnvironment, folder, holdfast, Running, start } from "./command-line.ts";

let directory: TemporaryDirectory;

before(async () => {
  directory = await folder("completion");
});

after(async () => {
  await directory.remove();
});

async function script(shell: string): Promise<string> {
  const { stdout, code } = await holdfast(["completion", shell]).finished;
  assert.equal(code, 0);
  const path = join(directory.path, `completion.${shell}`);
  writeFileSync(path, stdout);
  return path;
}

async function installed(shell: string): Promise<void> {
  const present = (): boolean =>
    ["/bin", "/usr/bin", "/usr/local/bin"].some((folder) => existsSync(join(folder, shell)));
  await ensureDebianPackage({ what: shell, packages: [shell], present });
}

test("bash", async () => {
  const path = await script("bash");
  const complete = async (...words: readonly string[]): Promise<string[]> => {
    const line = `. '${path}'; COMP_WORDS=(holdfast "$@"); COMP_CWORD=$#; _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = await start("bash", ["-c", line, "bash", ...words]).finished;
    assert.equal(stderr, "");
    return stdout.split("\n").filter((each) => each !== "");
  };
  assert.deepEqual(await complete(""), ["run", "lead", "ls", "show", "evict", "sql", "completion"]);
  assert.deepEqual(await complete("run", "x", "--ma"), ["--max-hold"]);
  assert.deepEqual(await complete("evict", "x", "--js"), ["--json"]);
  assert.deepEqual(await complete("completion", "z"), ["zsh"]);
  assert.deepEqual(await complete("run", "x", "--ttl", ""), []);
  assert((await complete("run", "x", "--", "slee")).includes("sleep"));
  writeFileSync(join(directory.path, "a file"), "");
  assert.deepEqual(await complete("run", "x", "--url-file", `${directory.path}/a`), [`${directory.path}/a file`]);
  assert.deepEqual(await complete("run", "x", "--", "cat", `${directory.path}/a`), [`${directory.path}/a file`]);
});

test("fish", async () => {
  await installed("fish");
  const path = await script("fish");
  const complete = async (line: string): Promise<string[]> => {
    const env = { HOME: directory.path };
    const words = ["--no-config", "-c", `source '${path}'; complete -C "${line}"`];
    const { stdout, stderr } = await start("fish", words, { env }).finished;
    assert.equal(stderr, "");
    return stdout.split("\n").flatMap((each) => (each === "" ? [] : (each.split("\t")[0] ?? "")));
  };
  assert.deepEqual((await complete("holdfast ")).toSorted(), [
    "completion",
    "evict",
    "lead",
    "ls",
    "run",
    "show",
    "sql",
  ]);
  assert.deepEqual(await complete("holdfast run x --ma"), ["--max-hold"]);
  assert.deepEqual(await complete("holdfast evict x --js"), ["--json"]);
  assert.deepEqual(await complete("holdfast completion z"), ["zsh"]);
  assert((await complete("holdfast run x -- slee")).includes("sleep"));
  assert(!(await complete("holdfast run x -- slee")).includes("--max-hold"));
});

test("zsh", async () => {
  await installed("zsh");
  const path = await script("zsh");
  // Completion in zsh works only at a prompt, so one is made: the keys go in, the line that zsh makes of them comes out.
  const shell = "zsh -f -i";
  const terminal = new Running(
    spawn("script", ["-q", "-e", "-c", shell, "/dev/null"], {
      stdio: ["pipe", "pipe", "pipe"],
      env: cleanEnvironment({ HOME: directory.path, TERM: "dumb" }),
    }),
  );
  const type = (keys: string): void => void terminal.child.stdin?.write(keys);
  type(`PS1='> '; autoload -Uz compinit; compinit -u -d '${directory.path}/dump'; . '${path}'; echo rea""dy\n`);
  await terminal.shows(/^ready\r$/m);
  // In front of what it shows stands `: `, so that the line does nothing but stand there when Enter is pressed.
  for (const [typed, completed] of [
    ["holdfast comp\tz\t", "holdfast completion zsh"],
    ["holdfast run x --ma\t1m", "holdfast run x --max-hold=1m"],
    ["holdfast show x --js\t", "holdfast show x --json"],
    ["holdfast run x -- slee\t5", "holdfast run x -- sleep 5"],
  ] as const) {
    type(`holdfast() { print -r -- "got: holdfast $*" }\n`);
    type(`${typed}\n`);
    await terminal.shows(new RegExp(`^got: ${completed}\\r$`, "m"));
  }
  terminal.child.kill("SIGKILL");
  await terminal.finished;
});

test("other shells are refused", async () => {
  const { code, stderr } = await holdfast(["completion", "tcsh"]).finished;
  assert.deepEqual([code, stderr], [64, "holdfast: takes a shell: bash, zsh, fish: holdfast completion bash\n"]);
});
