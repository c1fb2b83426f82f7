/** How a rate changes with the number of waiters; both axes grow by factors. */
import { escaped, rounded } from "./bar-chart.ts";

export interface Series {
  readonly name: string;
  readonly ours: boolean;
  readonly points: readonly { readonly waiters: number; readonly rate: number }[];
}

const WIDTH = 720;
const HEIGHT = 380;
const LEFT = 64;
const RIGHT = 210;
const TOP = 52;
const BOTTOM = 48;
const DASHES = ["6 4", "2 3", "10 3", "8 3 2 3", "1 2"];

/** SVG, readable on light and dark pages; lines are told apart without colours as well. */
export function growthChart(title: string, unit: string, series: readonly Series[]): string {
  const points = series.flatMap((each) => each.points);
  const most = 10 ** Math.ceil(Math.log10(Math.max(...points.map(({ rate }) => rate))));
  const least = 10 ** Math.floor(Math.log10(Math.min(...points.map(({ rate }) => rate))));
  const widest = Math.max(...points.map(({ waiters }) => waiters));
  const x = (waiters: number): number => LEFT + (Math.log10(waiters) / Math.log10(widest)) * (WIDTH - LEFT - RIGHT);
  const y = (rate: number): number =>
    HEIGHT - BOTTOM - (Math.log10(rate / least) / Math.log10(most / least)) * (HEIGHT - TOP - BOTTOM);
  const decades = Array.from({ length: Math.round(Math.log10(most / least)) + 1 }, (_, index) => least * 10 ** index);
  const grid = decades.map(
    (value) =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" stroke="#ddd"/>` +
      `<text x="${LEFT - 8}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end">${value.toLocaleString("en-US")}</text>`,
  );
  const ticks = [...new Set(points.map(({ waiters }) => waiters))].map(
    (value) => `<text x="${x(value).toFixed(1)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${value}</text>`,
  );
  const lines = series.flatMap(({ name, ours, points: own }, index) => {
    const last = own.at(-1);
    if (last === undefined) return [];
    const style = ours
      ? 'stroke="#0369a1" stroke-width="3"'
      : `stroke="#c2410c" stroke-width="1.5" stroke-dasharray="${DASHES[index % DASHES.length] ?? ""}"`;
    const path = own.map(({ waiters, rate }) => `${x(waiters).toFixed(1)},${y(rate).toFixed(1)}`).join(" ");
    const label = `${escaped(name)} · ${rounded(last.rate)}`;
    return [
      `<polyline points="${path}" fill="none" ${style}/>`,
      `<text x="${(x(last.waiters) + 8).toFixed(1)}" y="${(y(last.rate) + 4).toFixed(1)}">${label}</text>`,
    ];
  });
  const all = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="12" y="18" font-weight="bold">${escaped(title)}</text>`,
    `<text x="12" y="34" fill="#555">${escaped(unit)}</text>`,
    ...grid,
    ...ticks,
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 10}" text-anchor="middle">waiters</text>`,
    ...lines,
    "</svg>",
  ];
  return `${all.join("\n")}\n`;
}
