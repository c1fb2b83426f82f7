/** Curator (Java) and kazoo (Python), each in a process of its own that is told over standard input when to run. */
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { killAtExit, temporaryDirectory } from "../../../servers/exit-cleanup.ts";
import { ensureDebianPackage } from "../../../servers/server-process.ts";

const JARS = "/usr/share/java";
const CLASS_PATH = ["curator-framework", "curator-client", "curator-recipes", "zookeeper", "guava", "slf4j-nop"]
  .map((name) => `${JARS}/${name}.jar`)
  .join(":");
const KAZOO = "/usr/lib/python3/dist-packages/kazoo";

/** A program that answers each line with one line. */
export interface PeerProgram {
  ask(line: string): Promise<string>;
  stop(): Promise<void>;
}

let compiled: Promise<string> | undefined;

/** Once for all works; the directory goes when this program ends. */
async function compile(): Promise<string> {
  const { path } = await temporaryDirectory("curator");
  const source = join(import.meta.dirname, "curator-locks.java");
  await promisify(execFile)("javac", ["-d", path, "-cp", CLASS_PATH, source]);
  return path;
}

/** `ask("run MS")` answers with a number; `ask("acquire")` and `ask("release")` with "ok". Compiles the program: some seconds. */
export async function curator(servers: string, path: string, clients: number): Promise<PeerProgram> {
  await ensureDebianPackage({
    what: "Curator",
    packages: ["libcurator-recipes-java", "default-jdk-headless"],
    present: () => existsSync(`${JARS}/curator-recipes.jar`) && existsSync("/usr/bin/javac"),
  });
  compiled ??= compile();
  const classes = await compiled;
  const java = ["-Xmx256m", "-cp", `${classes}:${CLASS_PATH}`, "CuratorLocks", servers, path, String(clients)];
  return await startProgram("java", java);
}

/** `ask("run MS")` answers with a number. */
export async function kazoo(servers: string, path: string, clients: number): Promise<PeerProgram> {
  await ensureDebianPackage({ what: "kazoo", packages: ["python3-kazoo"], present: () => existsSync(KAZOO) });
  const program = join(import.meta.dirname, "kazoo-locks.py");
  return await startProgram("/usr/bin/python3", [program, servers, path, String(clients)]);
}

async function startProgram(command: string, args: string[]): Promise<PeerProgram> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const forget = killAtExit(child);
  const ended = new Promise<void>(
    (resolve) => void child.once("error", () => resolve()).once("close", () => resolve()),
  );
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const line = await lines.next();
    if (line.done === true) throw new Error(`${command} ${args[0]} ended`);
    return line.value;
  };
  const program: PeerProgram = {
    async ask(line) {
      child.stdin.write(`${line}\n`);
      return await next();
    },
    async stop() {
      child.stdin.end();
      await ended;
      forget();
    },
  };
  try {
    await next(); // "ready"
    return program;
  } catch (error) {
    await program.stop();
    throw error;
  }
}
