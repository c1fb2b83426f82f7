/** The verbs of the queue as Lua scripts: one file each in scripts/, read once. */
import { readFileSync } from "node:fs";
import { createScript, type Script } from "../../redis/index.ts";

export interface Scripts {
  readonly request: Script;
  readonly renew: Script;
  readonly leave: Script;
  readonly evict: Script;
  readonly inspect: Script;
}

export interface ScriptSettings {
  /** How long a name is remembered after its last use. */
  readonly rememberMs: number;
  /** Whether the server can tell who listens to a channel: not in a Cluster. */
  readonly probe: boolean;
}

/** The settings stand at the head of each script: they are the same for every call, and so is the script's name. */
export function loadScripts({ rememberMs, probe }: ScriptSettings): Scripts {
  const head = `local REMEMBER_MS, PROBE = ${Math.ceil(rememberMs)}, ${probe}\n`;
  const queue = read("queue");
  const verb = (name: string): Script => createScript(head + read(name).replace("-- include: queue\n", () => queue));
  return {
    request: verb("request"),
    renew: verb("renew"),
    leave: verb("leave"),
    evict: verb("evict"),
    inspect: verb("inspect"),
  };
}

const texts = new Map<string, string>();

function read(name: string): string {
  let text = texts.get(name);
  if (text === undefined) {
    text = readFileSync(new URL(`scripts/${name}.lua`, import.meta.url), "utf8");
    texts.set(name, text);
  }
  return text;
}
