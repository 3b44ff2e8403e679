// The positions and texts of the labels of a zoomed axis.
import type { Axis } from "./figure";
import { text } from "./format";

const logarithmic = (a: Axis): boolean => (a.base ?? 0) > 1;

/** nice rounds x up to 1, 2 or 5 times a power of ten. */
export function nice(x: number): number {
  const power = 10 ** Math.floor(Math.log10(x));
  for (const f of [1, 2, 5]) if (f * power >= x * (1 - 1e-9)) return f * power;
  return 10 * power;
}

/** ticks returns the labeled values between min and max, approximately most values. */
export function ticks(a: Axis, min: number, max: number, most: number): number[] {
  const whole = min <= a.min && max >= a.max;
  const given = (a.ticks ?? []).slice().sort((p, q) => p - q).filter((t) => t >= min - 1e-12 * Math.abs(min) && t <= max + 1e-12 * Math.abs(max));
  if (whole || (given.length >= 3 && logarithmic(a))) return given;
  if (logarithmic(a) && max / min > 10) return powers(a, min, max);
  const step = nice(((max - min) * a.factor) / Math.max(2, most)) / a.factor;
  const out: number[] = [];
  for (let i = Math.ceil(min / step - 1e-9); i * step <= max * (1 + 1e-12) && out.length < 100; i++) out.push(i * step);
  return out;
}

function powers(a: Axis, min: number, max: number): number[] {
  const out: number[] = [];
  const factors = max / min > 1000 ? [1] : [1, 2, 5];
  for (let e = Math.floor(Math.log10(min * a.factor)); e <= Math.log10(max * a.factor); e++) {
    for (const f of factors) {
      const t = (f * 10 ** e) / a.factor;
      if (t >= min && t <= max) out.push(t);
    }
  }
  return out;
}

/** labels formats ticks; in a narrow range it adds decimals until the labels differ. */
export function labels(a: Axis, at: number[]): string[] {
  let least = Infinity;
  for (let i = 1; i < at.length; i++) least = Math.min(least, Math.abs(at[i]! - at[i - 1]!) * a.factor);
  const plain = at.map((t) => text(a, t));
  if (new Set(plain).size === at.length || !Number.isFinite(least) || least <= 0) return plain;
  const most = Math.max(...at.map(Math.abs));
  const [unit, factor] = !a.duration ? ["", a.factor] : most >= 1 ? [" s", 1] : most >= 1e-3 ? [" ms", 1e3] : [" us", 1e6];
  const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10((least / a.factor) * factor) - 1e-9)));
  return at.map((t) => (t * factor).toFixed(decimals) + unit);
}

/** spaced clears labels that would touch the next label; it always keeps the last label. */
export function spaced(labels: string[], places: number[], width: (label: string) => number, gap: number): string[] {
  const out = labels.slice();
  let free = Infinity;
  for (let i = labels.length - 1; i >= 0; i--) {
    const half = width(labels[i]!) / 2;
    if (places[i]! + half > free) out[i] = "";
    else free = places[i]! - half - gap;
  }
  return out;
}
