// Additions to the drawings of uPlot: zones, marks, dots with their intervals, and
// columns. Coordinates are in device pixels; chart.ts clips the output to the plot.
import type uPlot from "uplot";
import type { Colors } from "./colors";
import type { Figure, Line } from "./figure";
import { ascending } from "./lines";

const px = (n: number): number => n * (devicePixelRatio || 1);
const font = (n: number, weight = "400"): string => `${weight} ${px(n)}px system-ui, sans-serif`;

/** fillZones shades the zones of x and the intervals of marks. */
export function fillZones(u: uPlot, f: Figure, c: Colors): void {
  u.ctx.fillStyle = c.zone;
  const fill = (low: number, high: number): void => {
    const from = u.valToPos(low, "x", true);
    u.ctx.fillRect(from, u.bbox.top, Math.max(1, u.valToPos(high, "x", true) - from), u.bbox.height);
  };
  for (const z of f.zones ?? []) {
    u.ctx.save();
    if (z.outage) {
      u.ctx.fillStyle = c.fail;
      u.ctx.globalAlpha *= 0.22;
    }
    fill(z.from, z.to);
    u.ctx.restore();
  }
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

/** nameZones writes the names of zones above the plot; it omits names without room. */
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

/** Box is a rectangle on the canvas: left, right, top, bottom. */
type Box = [number, number, number, number];

/** drawMarks draws named vertical lines. The name of a line is placed to cover as little as possible. */
export function drawMarks(u: uPlot, f: Figure, c: Colors): void {
  const { ctx, bbox } = u;
  const marks = (f.marks ?? []).map((m) => ({ name: m.name, x: u.valToPos(m.x, "x", true) }));
  const shown = marks.filter((m) => m.x >= bbox.left - 1 && m.x <= bbox.left + bbox.width + 1);
  if (shown.length === 0) return;
  ctx.font = font(13, "600");
  ctx.lineJoin = "round";
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const ink = pointsAlong(u, f);
  const taken: Box[] = [];
  for (const m of shown) {
    ctx.strokeStyle = c.soft;
    ctx.lineWidth = px(1);
    ctx.setLineDash([px(3), px(4)]);
    ctx.beginPath();
    ctx.moveTo(m.x, bbox.top);
    ctx.lineTo(m.x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
    const at = placeName(u, m.x, ctx.measureText(m.name).width, (f.columns?.length ?? 0) > 0, ink, taken);
    taken.push(at);
    ctx.strokeStyle = c.card; // keeps the name readable on top of a line
    ctx.lineWidth = px(4);
    ctx.strokeText(m.name, at[0], (at[2] + at[3]) / 2);
    ctx.fillStyle = c.ink;
    ctx.fillText(m.name, at[0], (at[2] + at[3]) / 2);
  }
}

/** placeName returns the position of a name with the given width beside x: at the top of histograms, at the bottom of curves. */
function placeName(u: uPlot, x: number, width: number, above: boolean, ink: [number, number][], taken: Box[]): Box {
  const { bbox } = u;
  const [first, last] = [bbox.left + px(2), bbox.left + bbox.width - px(2) - width];
  let best: Box = [0, 0, 0, 0];
  let least = Infinity;
  for (let row = 0; row < 6; row++) {
    const y = above ? bbox.top + px(8 + 19 * row) : bbox.top + bbox.height - px(12 + 19 * row);
    for (const side of [x + px(5), x - px(5) - width]) {
      const left = Math.max(first, Math.min(side, last));
      const box: Box = [left, left + width, y - px(9), y + px(9)];
      let covered = left === side ? 0 : 1; // the mark's own line
      covered += 1000 * taken.filter((b) => box[0] < b[1] + px(6) && b[0] < box[1] + px(6) && box[2] < b[3] && b[2] < box[3]).length;
      for (const [px, py] of ink) if (px >= box[0] && px <= box[1] && py >= box[2] && py <= box[3]) covered++;
      if (covered < least) [best, least] = [box, covered];
    }
  }
  return best;
}

/** pointsAlong lists points along all lines of f; no name fits between two neighboring points. */
function pointsAlong(u: uPlot, f: Figure): [number, number][] {
  const all: [number, number][] = [];
  for (const l of f.lines ?? []) {
    let before: [number, number] | null = null;
    for (let i = 0; i < l.x.length; i++) {
      const [x, y] = [l.x[i], l.y[i]];
      if (x === null || x === undefined || y === null || y === undefined) continue;
      const now: [number, number] = [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
      const steps = before ? Math.min(200, Math.ceil(Math.hypot(now[0] - before[0], now[1] - before[1]) / px(6))) : 0;
      for (let k = 1; k < steps; k++) all.push([before![0] + ((now[0] - before![0]) * k) / steps, before![1] + ((now[1] - before![1]) * k) / steps]);
      all.push(now);
      before = now;
    }
  }
  return all;
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

/** fillColumns draws a histogram. Even the smallest count has a visible column. */
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

/** lineThrough returns a path through the points of a line in their own order, for lines with decreasing x. */
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

/** goesBack reports whether uPlot cannot draw the line because x decreases. */
export const goesBack = (l: Line): boolean => !ascending(l);
