/** Every command and every option, once: parsing, help and completion all read this table. */

/** What an option takes. None: it is a switch. */
export type Argument = "TIME" | "N" | "NAME" | "URL" | "FILE" | "'SHELL LINE'";

export interface OptionSpec {
  readonly long: string;
  readonly short?: string;
  readonly argument?: Argument;
  /** May be given several times. */
  readonly repeatable?: boolean;
  readonly help: string;
}

export interface OptionGroup {
  readonly title: string;
  readonly options: readonly OptionSpec[];
}

export interface CommandSpec {
  readonly name: string;
  /** After `holdfast `, one line each. */
  readonly usage: readonly string[];
  readonly summary: string;
  readonly groups: readonly OptionGroup[];
  /** Takes `-- COMMAND [ARG...]`. */
  readonly runs?: boolean;
}

const GENERAL: readonly OptionSpec[] = [
  { long: "help", short: "h", help: "print this and exit" },
  { long: "version", help: "print the version and exit" },
];

const STORE: readonly OptionSpec[] = [
  { long: "url", argument: "URL", help: "where the locks live (default: SQLite in the user's state directory)" },
  { long: "url-file", argument: "FILE", help: "read the URL from FILE (this and HOLDFAST_URL keep secrets out of ps)" },
];

const LOOKING: readonly OptionGroup[] = [
  { title: "Options", options: [{ long: "json", help: "print one JSON array" }, ...STORE, ...GENERAL] },
];

const TTL: OptionSpec = { long: "ttl", argument: "TIME", help: "lease, renewed while COMMAND runs (30s)" };

const KILL_AFTER: OptionSpec = {
  long: "kill-after",
  short: "k",
  argument: "TIME",
  help: "from TERM to KILL (5s; at most half of --ttl)",
};

const RUNNING: OptionGroup = {
  title: "Run",
  options: [
    { long: "command", short: "c", argument: "'SHELL LINE'", help: "run the line with sh -c" },
    {
      long: "foreground",
      help: "stay in the terminal's process group (default when stdin is a terminal)",
    },
    { long: "quiet", short: "q", help: "say nothing when busy or waiting" },
    { long: "verbose", short: "v", help: "say what happens" },
    ...GENERAL,
  ],
};

const RUN: CommandSpec = {
  name: "run",
  usage: ["run NAME [options] -- COMMAND [ARG...]", "run NAME [options] -c 'SHELL LINE'"],
  summary: "run COMMAND while holding NAME",
  runs: true,
  groups: [
    {
      title: "Wait (default: for ever)",
      options: [
        { long: "no-wait", short: "n", help: "do not wait" },
        { long: "wait", short: "w", argument: "TIME", help: "wait at most TIME" },
        { long: "busy-code", short: "E", argument: "N", help: "exit code when busy (75)" },
        { long: "once", argument: "TIME", help: "cron on many machines: -n --at-least TIME -E 0" },
      ],
    },
    {
      title: "Hold",
      options: [
        TTL,
        { long: "at-least", argument: "TIME", help: "NAME stays taken this long from the grant, even after exit (0)" },
        { long: "max-hold", argument: "TIME", help: "stop COMMAND after TIME, exit 124" },
        KILL_AFTER,
      ],
    },
    {
      title: "Which lock",
      options: [
        { long: "shared", short: "s", help: "share with other --shared" },
        { long: "permits", argument: "N", help: "at most N at once (not with --shared)" },
        { long: "also", argument: "NAME", repeatable: true, help: "one more name, all or none; repeatable" },
        ...STORE,
      ],
    },
    RUNNING,
  ],
};

const LEAD: CommandSpec = {
  name: "lead",
  usage: ["lead NAME [options] -- COMMAND [ARG...]", "lead NAME [options] -c 'SHELL LINE'"],
  summary: "run COMMAND while leader; again in each term",
  runs: true,
  groups: [{ title: "Hold", options: [TTL, KILL_AFTER] }, { title: "Which election", options: STORE }, RUNNING],
};

export const COMMANDS: readonly CommandSpec[] = [
  RUN,
  LEAD,
  { name: "ls", usage: ["ls [PREFIX]"], summary: "list the locks whose name starts with PREFIX", groups: LOOKING },
  { name: "show", usage: ["show NAME"], summary: "show who holds NAME and who waits for it", groups: LOOKING },
  { name: "evict", usage: ["evict NAME TOKEN"], summary: "end the holder of NAME that has TOKEN", groups: LOOKING },
  {
    name: "sql",
    usage: ["sql mysql"],
    summary: "print the tables and the least privileges",
    groups: [{ title: "Options", options: GENERAL }],
  },
  {
    name: "completion",
    usage: ["completion bash|zsh|fish"],
    summary: "print a completion script",
    groups: [{ title: "Options", options: GENERAL }],
  },
];

export function commandNamed(name: string): CommandSpec | undefined {
  return COMMANDS.find((command) => command.name === name);
}

export function optionsOf(command: CommandSpec): readonly OptionSpec[] {
  return command.groups.flatMap((group) => group.options);
}
