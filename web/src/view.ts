// The visible range of the axes of a chart.
import type { Axis, Figure } from "./figure";

type Range = [number, number];

const logarithmic = (a: Axis): boolean => (a.base ?? 0) > 1 && a.min > 0;
const to = (a: Axis, v: number): number => (logarithmic(a) ? Math.log(v) : v);
const back = (a: Axis, v: number): number => (logarithmic(a) ? Math.exp(v) : v);

/** minShare is the smallest visible share of an axis, the limit of the zoom. */
const minShare = 1e-4;

/** View is the visible range of x and of y. */
export class View {
  x: Range;
  y: Range;

  constructor(private readonly f: Figure, zoomed: Range | null) {
    this.x = full(f.x);
    this.y = full(f.y);
    this.setX(zoomed);
  }

  /** zoomed returns the visible range of x, or null if the whole axis is visible. */
  get zoomed(): Range | null {
    const all = full(this.f.x);
    return this.x[0] <= all[0] && this.x[1] >= all[1] ? null : this.x;
  }

  /** narrowed reports whether a part of an axis is hidden. */
  get narrowed(): boolean {
    const all = full(this.f.y);
    return this.zoomed !== null || this.y[0] > all[0] || this.y[1] < all[1];
  }

  setX(range: Range | null): void {
    this.x = range ? fit(this.f.x, range) : full(this.f.x);
  }

  setY(range: Range): void {
    this.y = fit(this.f.y, range);
  }

  reset(): void {
    this.x = full(this.f.x);
    this.y = full(this.f.y);
  }

  /** scaled returns the range of x, scaled by a factor around a value; null stands for the middle. */
  scaled(factor: number, around: number | null): Range {
    const a = this.f.x;
    const [min, max] = [to(a, this.x[0]), to(a, this.x[1])];
    const middle = around === null || around < this.x[0] || around > this.x[1] ? (min + max) / 2 : to(a, around);
    return [back(a, middle - (middle - min) * factor), back(a, middle + (max - middle) * factor)];
  }

  /** pinched returns the range of x that puts two values at two pixels of a plot with the given width. */
  pinched(values: number[], pixels: [number, number], width: number): Range {
    const a = this.f.x;
    const [from, until] = [to(a, values[0]!), to(a, values[1]!)];
    const each = (until - from) / (pixels[1] - pixels[0]);
    return [back(a, from - pixels[0] * each), back(a, until + (width - pixels[1]) * each)];
  }
}

function full(a: Axis): Range {
  return a.max > a.min ? [a.min, a.max] : [a.min - 0.5, a.min + 0.5];
}

/** fit limits a range to its axis and to the deepest zoom. */
function fit(a: Axis, range: Range): Range {
  const [first, last] = full(a).map((v) => to(a, v)) as Range;
  let [min, max] = range.map((v) => to(a, Math.max(v, logarithmic(a) ? a.min / 1e6 : v))) as Range;
  if (!(max - min >= (last - first) * minShare)) {
    const middle = (min + max) / 2;
    min = middle - ((last - first) * minShare) / 2;
    max = min + (last - first) * minShare;
  }
  const shift = Math.max(0, first - min) - Math.max(0, max - last);
  min = Math.max(first, min + shift);
  max = Math.min(last, max + shift);
  if (!(max > min)) return full(a);
  return [back(a, min), back(a, max)];
}
