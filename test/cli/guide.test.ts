/** Every example of the guide to the command line is run, and says what the guide says that it says. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { COMMANDS, optionsOf } from "../../src/cli/commands.ts";
import { EXIT } from "../../src/cli/exit-codes.ts";
import type { TemporaryDirectory } from "../../servers/exit-cleanup.ts";
import { folder, MAIN, start } from "./command-line.ts";

const GUIDE = readFileSync(join(import.meta.dirname, "../../docs/guide/command-line.md"), "utf8");

let directory: TemporaryDirectory;

before(async () => {
  directory = await folder("guide");
  const bin = join(directory.path, "bin");
  mkdirSync(join(directory.path, "app"));
  mkdirSync(bin);
  writeFileSync(join(bin, "holdfast"), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`, { mode: 0o755 });
  writeFileSync(join(directory.path, "app/nightly"), "#!/bin/sh\necho ran nightly\n", { mode: 0o755 });
});

after(async () => {
  await directory.remove();
});

/** The blocks of one kind, without the indentation that they have inside lists. */
function blocks(kind: string): string[] {
  return [...GUIDE.matchAll(new RegExp(`^( *)\`\`\`${kind}\\n([^]*?)^ *\`\`\`$`, "gm"))].map(
    ([, indent = "", text = ""]) => text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
}

async function shell(line: string, name: string): Promise<{ output: string; code: number | null }> {
  const env = {
    HOLDFAST_URL: undefined,
    XDG_STATE_HOME: join(directory.path, name),
    PATH: `${join(directory.path, "bin")}:${process.env["PATH"] ?? ""}`,
  };
  const { stdout, code } = await start("/bin/sh", ["-c", `exec 2>&1\n${line}`], { env, cwd: directory.path }).finished;
  return { output: stdout, code };
}

/** What differs from run to run. */
function constant(text: string): string {
  return text
    .replaceAll(/\d{16}/g, "TOKEN")
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, "TIME")
    .replaceAll(/[\w.-]+:\d+(?= +TIME| since)/g, "HOST:PID")
    .replaceAll(/\/\S+\/holdfast\/locks\.db/g, "STORE")
    .replaceAll(/[\d.]+ (?:s|ms)$/gm, "LEFT")
    .replaceAll(/ {2,}/g, "  ");
}

const sessions = blocks("console");

for (const [at, session] of sessions.entries()) {
  test(`example ${at + 1}: ${session.split("\n")[0] ?? ""}`, async () => {
    const steps = session.split(/^\$ /m).slice(1);
    assert(steps.length > 0);
    for (const step of steps) {
      const [line = "", ...expected] = step.split("\n");
      const { output } = await shell(line, `session-${at}`);
      assert.equal(constant(output), constant(expected.join("\n")));
    }
  });
}

for (const [at, script] of blocks("sh").entries()) {
  test(`script ${at + 1}`, async () => {
    assert.deepEqual(await shell(script, `script-${at}`), { output: "did one\ndid two\n", code: 0 });
  });
}

test("every line for cron runs", async () => {
  let ran = 0;
  for (const table of blocks("crontab")) {
    let settings = "";
    for (const line of table.trim().split("\n")) {
      const [, schedule, command = ""] = /^((?:\S+ ){4}\S+) +(.*)$/.exec(line) ?? [];
      if (schedule === undefined) {
        // PATH is an example of a private one; the test has its own.
        if (!line.startsWith("PATH=")) settings += `export ${line.replaceAll("/srv/app", directory.path)}\n`;
        continue;
      }
      // As cron does: an unescaped % ends the command.
      assert.doesNotMatch(command, /(^|[^\\])%/);
      const line2 = command.replaceAll("\\%", "%").replaceAll("/srv/app/", `${directory.path}/app/`);
      const { output, code } = await shell(settings + line2, `cron-${ran++}`);
      assert.equal(code, 0, output);
      assert.match(output, /^(ran nightly|\d{4}-\d\d-\d\d)\n$/);
    }
  }
  assert.equal(ran, 3);
});

test("the guide has every option, every exit code and every command", () => {
  for (const command of COMMANDS) {
    assert(GUIDE.includes(`holdfast ${command.name}`) || GUIDE.includes(`| ${command.name} `), command.name);
    for (const { long } of optionsOf(command)) {
      if (long !== "help" && long !== "version") assert(GUIDE.includes(`--${long}`), `--${long}`);
    }
  }
  for (const code of Object.values(EXIT).filter((each) => each !== 0 && each !== 128)) {
    assert.match(GUIDE, new RegExp(`^\\| ${code} +\\|`, "m"));
  }
});
