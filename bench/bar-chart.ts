/** One work as horizontal bars: ours, its peers and the limit. The axis grows by factors, since peers differ by orders of magnitude. */
import type { ContenderResult, WorkResult } from "./harness.ts";

const WIDTH = 720;
const LEFT = 300;
const RIGHT = 80;
const TOP = 44;
const ROW = 24;
const COLOURS: Record<ContenderResult["kind"], string> = { limit: "#9ca3af", ours: "#0369a1", peer: "#c2410c" };

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export function rounded(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);
}

/** SVG, readable on light and dark pages. */
export function barChart(result: WorkResult): string {
  const bars = result.contenders.filter(({ median }) => median > 0);
  const most = Math.max(...bars.map(({ median }) => median));
  const least = 10 ** Math.floor(Math.log10(Math.min(...bars.map(({ median }) => median))) - 0.3);
  const length = (value: number): number =>
    (Math.log10(value / least) / Math.log10(most / least)) * (WIDTH - LEFT - RIGHT);
  const height = TOP + bars.length * ROW + 12;
  const rows = bars.flatMap(({ name, kind, median }, index) => {
    const y = TOP + index * ROW;
    const end = LEFT + length(median);
    return [
      `<text x="${LEFT - 8}" y="${y + 15}" text-anchor="end"${kind === "ours" ? ' font-weight="bold"' : ""}>${escaped(name)}</text>`,
      `<rect x="${LEFT}" y="${y + 3}" width="${length(median).toFixed(1)}" height="${ROW - 7}" fill="${COLOURS[kind]}"/>`,
      `<text x="${(end + 6).toFixed(1)}" y="${y + 15}">${rounded(median)}</text>`,
    ];
  });
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    `<title>${escaped(result.title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="12" y="18" font-weight="bold">${escaped(result.title)}</text>`,
    `<text x="12" y="34" fill="#555">${escaped(result.unit)}, logarithmic</text>`,
    ...rows,
    "</svg>",
  ];
  return `${lines.join("\n")}\n`;
}
