/** What runs found, for a person: a table, and the page docs/faults.md. */
import { sum, type RunResult } from "./result.ts";

const SAFETY = ["S1", "S2", "S3", "S4"] as const;
const REST = ["L1", "L5", "order"] as const;

/** One line a run. */
export function table(results: readonly RunResult[]): string {
  const head = [
    "engine",
    "seed",
    "minutes",
    "faults",
    "requests",
    "grants",
    "writes",
    ...SAFETY,
    "L1, L5, order",
    "left over",
    "S1 excused",
  ];
  const rows = results.map((result) => [
    result.engine,
    String(result.seed),
    result.minutes,
    sum(result.faults),
    result.requests,
    result.grants,
    result.writes,
    ...SAFETY.map((promise) => result.violations[promise] ?? 0),
    REST.reduce((all, promise) => all + (result.violations[promise] ?? 0), 0),
    result.complaints.length,
    sum(result.excused),
  ]);
  const right = (text: string | number): string => (typeof text === "number" ? text.toLocaleString("en-US") : text);
  const lines = [head, head.map((_, index) => (index === 0 ? "---" : "---:")), ...rows];
  return lines.map((line) => `| ${line.map(right).join(" | ")} |`).join("\n");
}

/** What happened, by kind, and everything that was broken. */
export function details(result: RunResult): string {
  const kinds = Object.entries(result.faults).map(([kind, count]) => `${kind} ×${count}`);
  const excuses = Object.entries(result.excused).map(
    ([fault, count]) => `S1 broke ${count} times under "${fault}", which breaks an assumption of this engine`,
  );
  return [
    `${result.engine} (${result.deployment}), seed ${result.seed}: ${kinds.join(", ") || "no faults"}`,
    ...excuses,
    ...result.complaints.map((complaint) => `complaint: ${complaint}`),
    ...result.pictures.map((picture) => `\n${picture}`),
  ].join("\n");
}

/** docs/faults.md */
export function page(results: readonly RunResult[]): string {
  const kinds = new Map<string, Map<string, number>>();
  for (const { engine, faults } of results) {
    const counts = kinds.get(engine) ?? new Map<string, number>();
    kinds.set(engine, counts);
    for (const [kind, count] of Object.entries(faults)) counts.set(kind, (counts.get(kind) ?? 0) + count);
  }
  const faults = [...kinds].map(([engine, counts]) => {
    const list = [...counts].sort(([left], [right]) => left.localeCompare(right));
    return `- **${engine}**: ${list.map(([kind, count]) => `${kind} ×${count}`).join(", ")}`;
  });
  return `${INTRODUCTION}
## Runs

${table(results)}

Faults by kind:

${faults.join("\n")}
${END}`;
}

const INTRODUCTION = `# Faults

What happens to locks when processes are killed and stopped, servers crash, networks fail and clocks jump. Run it yourself:

\`\`\`
npm run faults -- --engine redis --seed 42 --minutes 5
npm run faults -- --engine all --minutes 1 --json
\`\`\`

Four client processes with four lanes each lock, wait, give up, write under their tokens and release, on real servers. Beside each
other, one fault after the other happens to the servers and to the clients; the seed draws them. Everybody records what they asked
and what they got (\`holdfast/testing\`, [histories](guide/testing.md#histories)). Then the faults stop, everybody finishes, all queue up
once more for each lock, and it is judged:

- **S1 to S4**: exclusion, growing tokens, stale writes refused, nobody ended another's hold. From the history, and for S3 from what the
  guarded thing itself remembers.
- **L1, L5, order**: no place or permit stayed free while somebody waited (outside disturbances), every request and release had its answer,
  the last line was served first come, first served where the engine is fair.
- **Left over**: anything still in the engine or connected to the servers, a socket, timer, listener or watch of a client after \`close()\`, an
  unhandled rejection, an unexpected error, a process that did not end by itself.
- **S1 excused**: overlaps while a fault had broken an assumption of that engine: a clock that jumps (lease engines that go by a
  server's clock), a Redis that forgets everything, a failover without \`minReplicas\`. S2 and S3 have no excuse: that is what the
  tokens are for.

The seed fixes which faults happen, to whom and for how long; the operating system still decides the rest, so a run does not repeat
exactly. A short form of this suite (some seconds of faults on each engine) is part of \`npm test\`.
`;

const END = `
## What it found

Each was mended, and has a test of its own:

- MySQL: sessions that had slept on a bell left a timer of ten seconds behind at \`close()\`, one for each sleep.
- MySQL: the driver only says goodbye when a connection is given up. While the server was frozen, one socket more stayed open with each command
  that had waited too long.
- ZooKeeper: a server that froze just after it had accepted a session could not be asked for its settings; that was reported as a wrong
  setting (\`ConfigError\`), which nobody tries again.
- The suite's own proxy: bytes overtook others that were still late, which no TCP connection does. The judge saw it as tokens that fell.

## That the judge can see

\`test/faults/planted\` has locks as articles write them, each with its mistake, on real servers: the judge catches every one, and finds nothing
when Holdfast plays the same scenes. \`test/faults/wrong-engines.test.ts\` lets the whole suite run on engines with a planted mistake, and
\`test/unit/history\` changes valid histories in eleven ways; each is found.
`;
