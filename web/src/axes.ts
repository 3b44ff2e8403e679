// The axes of a chart, in the format of uPlot.
import type uPlot from "uplot";
import type { Colors } from "./colors";
import type { Axis, Figure } from "./figure";
import { labels, spaced, ticks } from "./ticks";
import type { View } from "./view";

const font = "13px system-ui, sans-serif";

/** scales returns the scales for the range of the view. */
export function scales(f: Figure, view: () => View): uPlot.Scales {
  const one = (a: Axis, range: () => [number, number]): uPlot.Scale => ({
    time: false, auto: false, distr: (a.base ?? 0) > 1 && a.min > 0 ? 3 : 1, log: a.base === 2 ? 2 : 10, range,
  });
  return { x: one(f.x, () => view().x), y: one(f.y, () => view().y) };
}

function widthOf(u: uPlot, text: string): number {
  u.ctx.save();
  u.ctx.font = font;
  const width = u.ctx.measureText(text).width;
  u.ctx.restore();
  return width;
}

/** rightPadding returns the width that the last label of the x axis needs to the right of the plot, in pixels. */
export function rightPadding(u: uPlot, f: Figure, view: View): number {
  const at = ticks(f.x, view.x[0], view.x[1], Math.max(2, u.width / 110));
  const last = labels(f.x, at).at(-1) ?? "";
  return Math.max(14, Math.ceil(widthOf(u, last) / 2) + 2);
}

/** axes returns the axes of the view; they call f and c for each drawing. */
export function axes(f: () => Figure, c: () => Colors): uPlot.Axis[] {
  const all = (_: uPlot, splits: number[]): number[] => splits;
  const common: uPlot.Axis = { font, stroke: () => c().soft, filter: all };
  return [
    {
      ...common, size: 32, gap: 6, grid: { show: false },
      ticks: { stroke: () => c().soft, width: 1, size: 4 }, border: { show: true, stroke: () => c().soft, width: 1 },
      splits: (u, _, min, max) => ticks(f().x, min, max, Math.max(2, u.over.clientWidth / 90)),
      values: (u, at) => spaced(labels(f().x, at), at.map((x) => u.valToPos(x, "x")), (text) => widthOf(u, text), 8),
    },
    {
      ...common, gap: 6, ticks: { show: false }, grid: { show: !f().heat, stroke: () => c().grid, width: 1 },
      size: (u, values) => Math.max(34, 12 + Math.max(0, ...(values ?? []).map((v) => widthOf(u, v ?? "")))),
      splits: (_, __, min, max) => ticks(f().y, min, max, 5),
      values: (_, at) => labels(f().y, at),
    },
  ];
}
