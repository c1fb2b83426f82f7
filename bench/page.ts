/** `node bench/page.ts [RESULT.json]`: renders docs/benchmarks.md and its charts from a run's JSON. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { format, resolveConfig } from "prettier";
import { barChart, rounded } from "./bar-chart.ts";
import type { Cost } from "./costs.ts";
import { growthChart, type Series } from "./growth-chart.ts";
import type { WorkResult } from "./harness.ts";
import { table } from "./report.ts";

export interface Run {
  readonly at: string;
  readonly machine: Readonly<Record<string, string>>;
  readonly command: string;
  readonly results: readonly WorkResult[];
  readonly costs: readonly Cost[];
}

const DOCS = join(import.meta.dirname, "../docs");
const CHARTS = "benchmarks";

export async function renderPage(run: Run): Promise<void> {
  const folder = join(DOCS, CHARTS);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const sections = run.results.map((result) => {
    writeFileSync(join(folder, `${result.id}.svg`), barChart(result));
    return `${table(result).replace(/^### /, "## ")}\n\n![${result.title}](${CHARTS}/${result.id}.svg)`;
  });
  const series = growth(run.results);
  if (series.length > 0) {
    const title = "Redis: hand-offs by the number of waiters in one process";
    writeFileSync(join(folder, "redis-growth.svg"), growthChart(title, "hand-offs a second", series));
    sections.push(`## Growth with the number of waiters\n\n![${title}](${CHARTS}/redis-growth.svg)`);
  }
  if (run.costs.length > 0) sections.push(costTable(run.costs));
  const page = [
    "# Benchmarks",
    `Rendered from one run of \`${run.command}\` on ${run.at.slice(0, 10)}; run it again and this page is written anew. All contenders of a table
take turns in the same run, in another order each round, pinned to one core, the server to another where there is one; the figures are medians.
Compare within a table: absolute figures belong to the machine.`,
    Object.entries(run.machine)
      .map(([what, value]) => `- ${what}: ${value}`)
      .join("\n"),
    floorTable(run),
    ...sections,
  ];
  const file = join(DOCS, "benchmarks.md");
  writeFileSync(file, await format(page.join("\n\n"), { ...(await resolveConfig(file)), parser: "markdown" }));
}

/** The floors that we have set ourselves, reached or not. */
function floorTable({ results, costs }: Run): string {
  const lines = ["## The floors", "", "| work | against | ours | floor | |", "|---|---|---:|---:|---|"];
  for (const { title, floors, contenders } of results) {
    const limit = contenders.find(({ kind }) => kind === "limit")?.median ?? Infinity;
    for (const { than, ratio, atLeast, reached } of floors) {
      const base = contenders.find(({ name }) => name === than)?.median ?? 0;
      const why = !reached && base * atLeast > limit ? ": it is above the limit itself" : "";
      lines.push(`| ${title} | ${than} | ${ratio.toFixed(2)} × | ${atLeast} × | ${verdict(reached)}${why} |`);
    }
  }
  for (const { engine, what, value, unit, atMost } of costs) {
    if (atMost === undefined) continue;
    lines.push(
      `| ${engine} | ${what} | ${rounded(value)} ${unit} | ≤ ${atMost} ${unit} | ${verdict(value <= atMost)} |`,
    );
  }
  return lines.join("\n");
}

function verdict(reached: boolean): string {
  return reached ? "reached" : "**not reached**";
}

function costTable(costs: readonly Cost[]): string {
  const rows = costs.map(({ engine, what, value, unit }) => `| ${engine} | ${what} | ${rounded(value)} ${unit} |`);
  return ["## What it costs", "", "| engine | | |", "|---|---|---:|", ...rows].join("\n");
}

function growth(results: readonly WorkResult[]): Series[] {
  const byName = new Map<string, { ours: boolean; points: { waiters: number; rate: number }[] }>();
  for (const { id, contenders } of results) {
    const waiters = Number(/^redis-waiters-(\d+)$/.exec(id)?.[1]);
    if (Number.isNaN(waiters)) continue;
    for (const { name, kind, median } of contenders) {
      if (kind === "limit" || median === 0) continue;
      const one = byName.get(name) ?? { ours: kind === "ours", points: [] };
      one.points.push({ waiters, rate: median });
      byName.set(name, one);
    }
  }
  return [...byName].map(([name, { ours, points }]) => ({ name, ours, points }));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const file = process.argv[2] ?? join(import.meta.dirname, "results/all.json");
  await renderPage(JSON.parse(readFileSync(file, "utf8")) as Run);
}
