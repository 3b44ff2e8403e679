// The numbers of a figure's lines: aligned to a common x axis for uPlot, and the
// value of a line at a given x.
import type { Line, Value } from "./figure";

/** ascending reports whether the x values of a line increase strictly. */
export function ascending(l: Line): boolean {
  let last = -Infinity;
  for (const x of l.x) {
    if (x === null || x <= last) return false;
    last = x;
  }
  return true;
}

/** places returns the distinct x values of all lines in ascending order. */
export function places(lines: Line[]): number[] {
  const first = lines[0];
  if (first && ascending(first) && lines.every((l) => l.x === first.x || same(l.x, first.x))) return first.x as number[];
  const all = new Set<number>();
  for (const l of lines) for (const x of l.x) if (x !== null) all.add(x);
  return Float64Array.from(all).sort() as unknown as number[];
}

function same(a: Value[], b: Value[]): boolean {
  return a.length === b.length && a.every((x, i) => x === b[i]);
}

/** aligned returns the y values of a line at the given x values, undefined if the line has no point there. */
export function aligned(l: Line, at: number[]): (Value | undefined)[] {
  if ((l.x as number[]) === at || (l.x.length === at.length && same(l.x, at))) return l.y;
  const by = new Map<number, Value>();
  l.x.forEach((x, i) => x !== null && by.set(x, l.y[i] ?? null));
  return Array.from(at, (x) => by.get(x));
}

/** below returns the index of the last ascending number that is at most x, or -1. */
export function below(at: ArrayLike<Value>, x: number): number {
  let low = 0;
  let high = at.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if ((at[mid] as number) <= x) low = mid + 1;
    else high = mid;
  }
  return low - 1;
}

/** nearest returns the index of the ascending number that is nearest to x, or -1. */
export function nearest(at: ArrayLike<Value>, x: number): number {
  const i = below(at, x);
  if (i < 0) return at.length > 0 ? 0 : -1;
  if (i + 1 < at.length && (at[i + 1] as number) - x < x - (at[i] as number)) return i + 1;
  return i;
}

/** LineValue is the value of a line at a given x, with its interval. */
export interface LineValue {
  y: number;
  low: number | null;
  high: number | null;
}

/**
 * valueAt returns the value of a line at x: its last point there. On a curve, such
 * as a model, it interpolates between two points; on a series of seconds it returns
 * the nearest point.
 */
export function valueAt(l: Line, x: number, curve: boolean): LineValue | null {
  if (l.dots || !ascending(l)) {
    const i = l.x.lastIndexOf(x);
    return i < 0 ? null : point(l, i);
  }
  const i = below(l.x, x);
  if (i >= 0 && l.x[i] === x) return point(l, i);
  if (curve) return between(l, i, x);
  const k = nearest(l.x, x);
  if (k < 0) return null;
  const gap = Math.abs(l.x[k]! - l.x[k === 0 ? 1 : k - 1]!);
  return Math.abs(l.x[k]! - x) <= gap ? point(l, k) : null;
}

function between(l: Line, i: number, x: number): LineValue | null {
  const share = i < 0 ? NaN : (x - l.x[i]!) / (l.x[i + 1]! - l.x[i]!);
  const mix = (of: Value[] | undefined): number | null => {
    const [a, b] = [of?.[i], of?.[i + 1]];
    return typeof a === "number" && typeof b === "number" ? a + (b - a) * share : null;
  };
  const y = mix(l.y);
  return y === null || !Number.isFinite(y) ? null : { y, low: mix(l.low), high: mix(l.high) };
}

function point(l: Line, i: number): LineValue | null {
  const y = l.y[i];
  if (y === undefined || y === null) return null;
  return { y, low: l.low?.[i] ?? null, high: l.high?.[i] ?? null };
}
