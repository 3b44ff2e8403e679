// Heat maps: counts as colors of a perceptually uniform scale that is safe for
// color-blind users: samples of cividis (Nuñez, Anderton and Renslow,
// PLOS ONE 13(7), 2018, doi:10.1371/journal.pone.0199239).
import { el } from "./dom";
import type uPlot from "uplot";
import type { Figure, Heat } from "./figure";
import { count } from "./format";

const ramp: [number, number, number][] = [
  [0, 32, 77], [0, 51, 111], [57, 72, 107], [87, 92, 109], [112, 113, 115],
  [138, 135, 121], [166, 157, 117], [196, 181, 108], [228, 207, 91], [255, 234, 70],
];

/** heatColor returns the color of a share, 0 to 1. The largest share has the highest contrast on both dark and light pages. */
export function heatColor(share: number, dark: boolean): string {
  const at = Math.min(1, Math.max(0, dark ? share : 1 - share)) * (ramp.length - 1);
  const i = Math.min(ramp.length - 2, Math.floor(at));
  const mixed = ramp[i]!.map((v, k) => Math.round(v + (ramp[i + 1]![k]! - v) * (at - i)));
  return "rgb(" + mixed.join(",") + ")";
}

/** mostOf returns the largest count. */
export function mostOf(h: Heat): number {
  let most = 0;
  for (const row of h.rows) for (const n of row) if (n > most) most = n;
  return most;
}

/** shareOf returns the position of a count on a logarithmic scale from 1 to most; the scale is logarithmic to show small and large counts. */
export function shareOf(n: number, most: number): number {
  return most <= 1 ? 1 : 0.1 + (0.9 * Math.log(n)) / Math.log(most);
}

/** paintHeat fills the cells; cells without counts are transparent. */
export function paintHeat(u: uPlot, f: Figure, dark: boolean): void {
  const h = f.heat!;
  const most = mostOf(h);
  const xs = h.x.map((x) => u.valToPos(x, "x", true));
  const ys = h.y.map((y) => u.valToPos(y, "y", true));
  for (let i = 0; i < h.rows.length; i++) {
    const [left, right] = [Math.round(xs[i]!), Math.round(xs[i + 1]!)];
    if (right < u.bbox.left || left > u.bbox.left + u.bbox.width) continue;
    const row = h.rows[i]!;
    for (let k = 0; k < row.length; k++) {
      if (row[k]! <= 0) continue;
      const [bottom, top] = [Math.round(ys[k]!), Math.round(ys[k + 1]!)];
      u.ctx.fillStyle = heatColor(shareOf(row[k]!, most), dark);
      u.ctx.fillRect(left, top, Math.max(1, right - left), Math.max(1, bottom - top));
    }
  }
}

/** heatLegend returns a legend with the colors and the range of counts. */
export function heatLegend(f: Figure, dark: boolean): HTMLElement {
  const h = f.heat!;
  const most = mostOf(h);
  const bar = el("canvas");
  bar.width = 120;
  bar.height = 10;
  const ctx = bar.getContext("2d");
  for (let i = 0; ctx && i < bar.width; i++) {
    ctx.fillStyle = heatColor(0.1 + (0.9 * i) / (bar.width - 1), dark);
    ctx.fillRect(i, 0, 1, bar.height);
  }
  return el("div", "heat-legend", "", el("span", "", most > 1 ? "1" : ""), bar, el("span", "", count(most) + " " + h.what));
}
