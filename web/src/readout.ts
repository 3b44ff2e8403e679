// The values of a chart at a position, as texts: for the box beside the mouse and
// for screen readers.
import type { Figure, Line } from "./figure";
import { count, show } from "./format";
import { below, nearest, places, valueAt } from "./lines";

/** Row is the value of one line. */
export interface Row {
  line: number; // index of the figure's line; -1: no line
  name: string;
  value: string;
  note?: string; // the interval of the value
  y: number | null; // position of the dot; null: no dot
}

/** Readout holds the values of a figure at x. */
export interface Readout {
  x: number; // position of the values
  head: string;
  rows: Row[];
}

/** stops returns the x values of a figure's data in ascending order: the possible positions of the cursor. */
export function stops(f: Figure, hidden: ReadonlySet<number>): number[] {
  if (f.heat) return middles(f.heat.x);
  if (f.columns?.length) return f.columns.map((c) => (c.from + c.to) / 2);
  const shown = (f.lines ?? []).filter((_, i) => !hidden.has(i));
  const dotted = shown.filter((l) => l.dots);
  return places(dotted.length > 0 ? dotted : shown);
}

/** middles returns the middle between neighboring edges. */
export function middles(edges: number[]): number[] {
  return edges.slice(1).map((e, i) => (e + edges[i]!) / 2);
}

/** readout returns the values of a figure at x, for a heat map at x and y. */
export function readout(f: Figure, hidden: ReadonlySet<number>, x: number, y: number | null): Readout | null {
  if (f.heat) return ofHeat(f, x, y);
  if (f.columns?.length) return ofColumns(f, x);
  const lines = f.lines ?? [];
  const seconds = !f.x.duration && /^(s|min|h)$/.test(f.x.unit); // over time, show measured points only
  const model = !seconds || lines.some((l, i) => l.dots && !hidden.has(i));
  const rows: Row[] = [];
  lines.forEach((l, i) => {
    if (!hidden.has(i)) rows.push(...ofLine(f, l, i, x, model));
  });
  return rows.length === 0 ? null : { x, head: show(f.x, x), rows };
}

function ofLine(f: Figure, l: Line, i: number, x: number, model: boolean): Row[] {
  const r = valueAt(l, x, model);
  if (!r) return [];
  const row: Row = { line: i, name: l.name, value: show(f.y, r.y), y: r.y };
  if (r.low !== null && r.high !== null) row.note = show(f.y, r.low) + " to " + show(f.y, r.high);
  return [row];
}

function ofColumns(f: Figure, x: number): Readout | null {
  const c = f.columns?.find((c) => x >= c.from && x < c.to);
  if (!c) return null;
  return { x: (c.from + c.to) / 2, head: show(f.x, c.from) + " to " + show(f.x, c.to), rows: [{ line: -1, name: "", value: show(f.y, c.y), y: c.y }] };
}

function ofHeat(f: Figure, x: number, y: number | null): Readout | null {
  const h = f.heat!;
  const i = below(h.x, x);
  const row = h.rows[i];
  if (!row) return null;
  const head = show(f.x, h.x[i]!) + " to " + show(f.x, h.x[i + 1]!);
  const middle = (h.x[i]! + h.x[i + 1]!) / 2;
  const k = y === null ? -1 : below(h.y, y);
  if (row[k] !== undefined) {
    const range = show(f.y, h.y[k]!) + " to " + show(f.y, h.y[k + 1]!);
    return { x: middle, head, rows: [{ line: -1, name: range, value: count(row[k]!) + " " + h.what, y: (h.y[k]! + h.y[k + 1]!) / 2 }] };
  }
  return { x: middle, head, rows: summary(f, row) };
}

/** summary returns count, median and 99th percentile of a column of a heat map. */
function summary(f: Figure, row: number[]): Row[] {
  const h = f.heat!;
  const all = row.reduce((a, b) => a + b, 0);
  if (all === 0) return [{ line: -1, name: "", value: "no " + h.what, y: null }];
  const at = (share: number): string => {
    let sum = 0;
    for (let k = 0; k < row.length; k++) {
      sum += row[k]!;
      if (sum >= share * all) return show(f.y, h.y[k + 1]!);
    }
    return "";
  };
  return [{ line: -1, name: "", value: count(all) + " " + h.what + ": half below " + at(0.5) + ", 99% below " + at(0.99), y: null }];
}

/** words formats a readout as one sentence. */
export function words(r: Readout): string {
  return r.head + ": " + r.rows.map((row) => (row.name ? row.name + " " : "") + row.value + (row.note ? ", " + row.note : "")).join("; ");
}

/** snap returns the stop nearest to x, or null if there are no stops. */
export function snap(all: number[], x: number): number | null {
  const i = nearest(all, x);
  return i < 0 ? null : all[i]!;
}
