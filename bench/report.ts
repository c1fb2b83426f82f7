/** A result as a table for people. */
import type { WorkResult } from "./harness.ts";

function number(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);
}

export function table(result: WorkResult): string {
  const limit = result.contenders.find((each) => each.kind === "limit")?.median ?? 0;
  const lines = [
    `### ${result.title}`,
    "",
    `${result.unit}, median of ${result.rounds} rounds of ${result.roundMs} ms`,
    "",
    "| | median | lowest – highest | of the limit |",
    "|---|---:|---:|---:|",
  ];
  for (const each of result.contenders) {
    if (each.missing !== undefined) {
      lines.push(`| ${each.name} | not run | ${each.missing.split("\n")[0]} | |`);
      continue;
    }
    const share = limit > 0 ? (each.median / limit).toFixed(2) : "";
    const name = each.kind === "ours" ? `**${each.name}**` : each.name;
    lines.push(`| ${name} | ${number(each.median)} | ${number(each.lowest)} – ${number(each.highest)} | ${share} |`);
  }
  lines.push("");
  for (const { name, notes } of result.contenders) for (const note of notes ?? []) lines.push(`- ${name} ${note}`);
  for (const floor of result.floors) {
    const verdict = floor.reached ? "reached" : "NOT reached";
    lines.push(`- ${floor.ours} against ${floor.than}: ${floor.ratio.toFixed(2)}, floor ${floor.atLeast}: ${verdict}`);
  }
  return lines.join("\n");
}
