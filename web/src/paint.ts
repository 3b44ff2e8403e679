// What uPlot does not draw by itself: stretches, marks, dots with their
// intervals, columns. All in device pixels, clipped to the plot by chart.ts.
import type uPlot from "uplot";
import type { Colors } from "./colors";
import type { Figure, Line } from "./figure";
import { ascending } from "./lines";

const px = (n: number): number => n * (devicePixelRatio || 1);
const font = (n: number, weight = "400"): string => `${weight} ${px(n)}px system-ui, sans-serif`;

/** fillZones shades stretches of x, and the intervals of marks. */
export function fillZones(u: uPlot, f: Figure, c: Colors): void {
  u.ctx.fillStyle = c.zone;
  const fill = (low: number, high: number): void => {
    const from = u.valToPos(low, "x", true);
    u.ctx.fillRect(from, u.bbox.top, Math.max(1, u.valToPos(high, "x", true) - from), u.bbox.height);
  };
  for (const z of f.zones ?? []) fill(z.from, z.to);
  for (const m of f.marks ?? []) if (typeof m.low === "number" && typeof m.high === "number") fill(m.low, m.high);
}

/** fillBand shades the interval along a line without dots. */
export function fillBand(u: uPlot, l: Line, color: string): void {
  if (l.dots || !l.low || !l.high) return;
  const there = l.x.flatMap((x, i) => (x !== null && typeof l.low![i] === "number" && typeof l.high![i] === "number" ? [i] : []));
  if (there.length < 2) return;
  const { ctx } = u;
  ctx.beginPath();
  for (const i of there) ctx.lineTo(u.valToPos(l.x[i]!, "x", true), u.valToPos(l.high[i]!, "y", true));
  for (const i of there.reverse()) ctx.lineTo(u.valToPos(l.x[i]!, "x", true), u.valToPos(l.low[i]!, "y", true));
  ctx.closePath();
  ctx.save();
  ctx.globalAlpha *= 0.16;
  ctx.fillStyle = color;
  ctx.fill();
  ctx.restore();
}

/** nameZones writes the names of stretches above the plot, as far as there is room. */
export function nameZones(u: uPlot, f: Figure, c: Colors): void {
  const { ctx, bbox } = u;
  ctx.font = font(12);
  ctx.fillStyle = c.soft;
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  let free = -Infinity;
  for (const z of f.zones ?? []) {
    const from = Math.max(bbox.left, u.valToPos(z.from, "x", true));
    const to = Math.min(bbox.left + bbox.width, u.valToPos(z.to, "x", true));
    const half = ctx.measureText(z.name).width / 2;
    const middle = (from + to) / 2;
    if (z.name === "" || to <= from || middle - half < free) continue;
    ctx.fillText(z.name, middle, bbox.top - px(3));
    free = middle + half + px(6);
  }
}

/** drawMarks draws named vertical lines; a histogram's names stand above, a curve's below it. */
export function drawMarks(u: uPlot, f: Figure, c: Colors): void {
  const { ctx, bbox } = u;
  const right = bbox.left + bbox.width;
  ctx.font = font(13, "600");
  ctx.lineJoin = "round";
  const rows: [number, number][][] = []; // what of each row of names is taken
  for (const m of f.marks ?? []) {
    const x = u.valToPos(m.x, "x", true);
    if (x < bbox.left - 1 || x > right + 1) continue;
    ctx.strokeStyle = c.soft;
    ctx.lineWidth = px(1);
    ctx.setLineDash([px(3), px(4)]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
    const width = ctx.measureText(m.name).width;
    let at = x > bbox.left + bbox.width * 0.4 ? x - width - px(5) : x + px(5);
    at = Math.max(bbox.left + px(2), Math.min(at, right - width - px(2)));
    const row = px(19) * freeRow(rows, at - px(6), at + width + px(6));
    const y = f.columns?.length ? bbox.top + px(8) + row : bbox.top + bbox.height - px(12) - row;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.strokeStyle = c.card; // the name can be read on top of a line
    ctx.lineWidth = px(4);
    ctx.strokeText(m.name, at, y);
    ctx.fillStyle = c.ink;
    ctx.fillText(m.name, at, y);
  }
}

/** freeRow finds the first row that is free from one place to another, and takes it. */
function freeRow(rows: [number, number][][], from: number, to: number): number {
  let i = rows.findIndex((row) => row.every((taken) => to <= taken[0] || from >= taken[1]));
  if (i < 0) i = rows.push([]) - 1;
  rows[i]!.push([from, to]);
  return i;
}

/** drawPoints draws a line's intervals and dots. */
export function drawPoints(u: uPlot, l: Line, color: string): void {
  const { ctx } = u;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = px(1.6);
  ctx.setLineDash([]);
  const dots = l.dots || l.x.length === 1;
  for (let i = 0; i < l.x.length; i++) {
    const [x, y, low, high] = [l.x[i], l.y[i], l.low?.[i], l.high?.[i]];
    if (x === null || x === undefined || y === null || y === undefined) continue;
    const at = u.valToPos(x, "x", true);
    if (dots && typeof low === "number" && typeof high === "number") drawBar(u, at, u.valToPos(low, "y", true), u.valToPos(high, "y", true));
    if (!dots) continue;
    ctx.beginPath();
    ctx.arc(at, u.valToPos(y, "y", true), px(3.5), 0, 2 * Math.PI);
    ctx.fill();
  }
}

function drawBar(u: uPlot, x: number, low: number, high: number): void {
  const end = px(4);
  u.ctx.beginPath();
  u.ctx.moveTo(x, low);
  u.ctx.lineTo(x, high);
  for (const y of [low, high]) {
    u.ctx.moveTo(x - end, y);
    u.ctx.lineTo(x + end, y);
  }
  u.ctx.stroke();
}

/** fillColumns draws a histogram. What was counted is seen, however little. */
export function fillColumns(u: uPlot, f: Figure, color: string): void {
  const base = u.bbox.top + u.bbox.height;
  u.ctx.fillStyle = color;
  for (const c of f.columns ?? []) {
    if (c.y <= 0) continue;
    const from = u.valToPos(c.from, "x", true);
    const width = u.valToPos(c.to, "x", true) - from;
    const height = Math.max(px(1.5), base - u.valToPos(c.y, "y", true));
    u.ctx.fillRect(from, base - height, Math.max(px(0.8), width - px(0.8)), height);
  }
}

/** lineThrough is a path through the points of a line in their own order, for lines that go back. */
export function lineThrough(u: uPlot, l: Line): uPlot.Series.Paths {
  const stroke = new Path2D();
  let drawing = false;
  for (let i = 0; i < l.x.length; i++) {
    const [x, y] = [l.x[i], l.y[i]];
    if (x === null || x === undefined || y === null || y === undefined) {
      drawing = false;
      continue;
    }
    const [left, top] = [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
    if (drawing) stroke.lineTo(left, top);
    else stroke.moveTo(left, top);
    drawing = true;
  }
  return { stroke, fill: null, clip: null, flags: 1 };
}

/** goesBack tells whether uPlot could not draw the line. */
export const goesBack = (l: Line): boolean => !ascending(l);
