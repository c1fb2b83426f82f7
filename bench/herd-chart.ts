/** The herd as a chart: both axes grow by factors. */

export interface HerdPoint {
  readonly recipe: "race" | "queue";
  readonly waiters: number;
  /** Watch events that wake somebody, per hand-off. */
  readonly events: number;
  /** Requests that are answered, per hand-off. */
  readonly requests: number;
}

const WIDTH = 640;
const HEIGHT = 360;
const LEFT = 64;
const RIGHT = 150;
const TOP = 28;
const BOTTOM = 48;
const MOST = 1000;
const LABELS = { race: "recipe 1 (race)", queue: "recipe 2 (queue)" };
/** Told apart without colours as well: one line is dashed. */
const STROKES = { race: 'stroke="#c2410c" stroke-dasharray="6 4"', queue: 'stroke="#0369a1"' };

function x(waiters: number): number {
  return LEFT + (Math.log10(waiters) / Math.log10(MOST)) * (WIDTH - LEFT - RIGHT);
}

/** From 1 to 1,000. */
function y(events: number): number {
  return HEIGHT - BOTTOM - (Math.log10(Math.max(events, 1)) / Math.log10(MOST)) * (HEIGHT - TOP - BOTTOM);
}

function line(points: readonly HerdPoint[], recipe: HerdPoint["recipe"]): string[] {
  const own = points.filter((point) => point.recipe === recipe);
  const last = own.at(-1);
  if (last === undefined) return [];
  const path = own.map(({ waiters, events }) => `${x(waiters).toFixed(1)},${y(events).toFixed(1)}`).join(" ");
  const dots = own.map(({ waiters, events }) => {
    const at = `cx="${x(waiters).toFixed(1)}" cy="${y(events).toFixed(1)}"`;
    return `<circle ${at} r="3.5" fill="#fff" ${STROKES[recipe].split(" ")[0]} stroke-width="2"/>`;
  });
  const label = `<text x="${(x(last.waiters) + 10).toFixed(1)}" y="${(y(last.events) + 4).toFixed(1)}">${LABELS[recipe]}: ${last.events}</text>`;
  return [`<polyline points="${path}" fill="none" ${STROKES[recipe]} stroke-width="2"/>`, ...dots, label];
}

/** SVG, readable on light and dark pages. */
export function herdChart(points: readonly HerdPoint[]): string {
  const right = WIDTH - RIGHT;
  const floor = HEIGHT - BOTTOM;
  const grid = [1, 10, 100, 1000].map(
    (value) =>
      `<line x1="${LEFT}" x2="${right}" y1="${y(value)}" y2="${y(value)}" stroke="#ddd"/>` +
      `<text x="${LEFT - 8}" y="${y(value) + 4}" text-anchor="end">${value}</text>`,
  );
  const ticks = [...new Set(points.map(({ waiters }) => waiters))].map(
    (value) => `<text x="${x(value).toFixed(1)}" y="${floor + 18}" text-anchor="middle">${value}</text>`,
  );
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    "<title>Watch events per hand-off, by the number of waiters</title>",
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${LEFT}" y="18">watch events per hand-off</text>`,
    ...grid,
    ...ticks,
    `<text x="${(LEFT + right) / 2}" y="${HEIGHT - 10}" text-anchor="middle">waiters</text>`,
    ...line(points, "race"),
    ...line(points, "queue"),
    "</svg>",
  ];
  return `${lines.join("\n")}\n`;
}
