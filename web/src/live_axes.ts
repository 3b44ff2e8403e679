// Axes that grow with the data, with the same rules as package figure for the report.
import type { Axis } from "./figure";
import { nice } from "./ticks";

/** Scale converts base units to the unit of display. */
export interface Scale {
  factor: number;
  unit: string;
}

/** decimal returns a scale with a decimal prefix of a unit, for values up to most. */
export function decimal(most: number, unit: string): Scale {
  let factor = 1;
  let prefix = "";
  for (const p of ["k", "M", "G", "T", "P"]) {
    if (most * factor < 1000) break;
    factor /= 1000;
    prefix = p;
  }
  return { factor, unit: (prefix + unit).trim() };
}

/** bits returns a scale from bytes per second to bits per second. */
export function bits(most: number): Scale {
  const s = decimal(8 * most, "bit/s");
  return { factor: s.factor * 8, unit: s.unit };
}

export const percent: Scale = { factor: 100, unit: "%" };

/** linear returns an axis from zero to a round number above most. */
export function linear(label: string, s: Scale, most: number): Axis {
  if (!(most * s.factor >= 1e-9) || most > 1e30) most = 1 / s.factor;
  const step = nice((most * s.factor) / 5) / s.factor;
  const n = Math.ceil(most / step - 1e-9);
  return { label, unit: s.unit, factor: s.factor, min: 0, max: step * n, ticks: Array.from({ length: n + 1 }, (_, i) => step * i) };
}

/** scaled returns a linear axis with the unit of the scale as its label. */
export const scaled = (s: Scale, most: number): Axis => linear(s.unit, s, most);

/** durations returns a logarithmic axis from least to most seconds. */
export function durations(label: string, least: number, most: number): Axis {
  if (!(least > 0) || !(most > 0)) [least, most] = [1e-3, 1];
  const from = Math.floor(Math.log10(least));
  const to = Math.ceil(Math.log10(most));
  const factors = to - from <= 2 ? [1, 2, 5] : [1];
  const all: number[] = [];
  for (let e = from; e <= to; e++) for (const f of factors) all.push(f * 10 ** e);
  let first = 0;
  let last = all.length - 1;
  while (first + 1 < last && all[first + 1]! <= least) first++;
  while (last - 1 > first && all[last - 1]! >= most) last--;
  const ticks = all.slice(first, last + 1);
  return { label, unit: "s", factor: 1, duration: true, base: 10, min: ticks[0]!, max: ticks.at(-1)!, ticks };
}

/** time returns an axis from 0 to most seconds. */
export function time(most: number): Axis {
  const [name, s]: [string, Scale] =
    most > 3 * 3600 ? ["hours", { factor: 1 / 3600, unit: "h" }] : most > 300 ? ["minutes", { factor: 1 / 60, unit: "min" }] : ["seconds", { factor: 1, unit: "s" }];
  const a = linear("time since the start (" + name + ")", s, most);
  a.max = Math.max(most, 1e-9);
  a.ticks = (a.ticks ?? []).filter((t) => t <= a.max);
  return a;
}

/** most returns the largest known value of columns, at least 0. */
export function most(...columns: (number | null)[][]): number {
  let x = 0;
  for (const col of columns) for (const v of col) if (v !== null && v > x) x = v; // holes in sparse arrays are undefined and never larger
  return x;
}

/** least returns the smallest positive value of columns, or 0. */
export function least(...columns: (number | null)[][]): number {
  let x = Infinity;
  for (const col of columns) for (const v of col) if (v !== null && v > 0 && v < x) x = v;
  return Number.isFinite(x) ? x : 0;
}
