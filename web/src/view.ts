// Which stretch of a figure's axes a chart shows.
import type { Axis, Figure } from "./figure";

type Range = [number, number];

const logarithmic = (a: Axis): boolean => (a.base ?? 0) > 1 && a.min > 0;
const to = (a: Axis, v: number): number => (logarithmic(a) ? Math.log(v) : v);
const back = (a: Axis, v: number): number => (logarithmic(a) ? Math.exp(v) : v);

/** deepest is how much of an axis is seen at least. */
const deepest = 1e-4;

/** A View is the stretch of x and of y that is shown. */
export class View {
  x: Range;
  y: Range;

  constructor(private readonly f: Figure, zoomed: Range | null) {
    this.x = full(f.x);
    this.y = full(f.y);
    this.setX(zoomed);
  }

  /** zoomed is the stretch of x, or null where all of it is seen. */
  get zoomed(): Range | null {
    const all = full(this.f.x);
    return this.x[0] <= all[0] && this.x[1] >= all[1] ? null : this.x;
  }

  /** narrowed reports whether anything is out of sight. */
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

  /** scaled is x stretched by a factor around a place, the middle if that is null. */
  scaled(factor: number, around: number | null): Range {
    const a = this.f.x;
    const [min, max] = [to(a, this.x[0]), to(a, this.x[1])];
    const middle = around === null || around < this.x[0] || around > this.x[1] ? (min + max) / 2 : to(a, around);
    return [back(a, middle - (middle - min) * factor), back(a, middle + (max - middle) * factor)];
  }

  /** pinched is x where two values are to be at two pixels of that many. */
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

/** fit keeps a range inside of its axis, and wide enough to be drawn. */
function fit(a: Axis, range: Range): Range {
  const [first, last] = full(a).map((v) => to(a, v)) as Range;
  let [min, max] = range.map((v) => to(a, Math.max(v, logarithmic(a) ? a.min / 1e6 : v))) as Range;
  if (!(max - min >= (last - first) * deepest)) {
    const middle = (min + max) / 2;
    min = middle - ((last - first) * deepest) / 2;
    max = min + (last - first) * deepest;
  }
  const shift = Math.max(0, first - min) - Math.max(0, max - last);
  min = Math.max(first, min + shift);
  max = Math.min(last, max + shift);
  if (!(max > min)) return full(a);
  return [back(a, min), back(a, max)];
}
