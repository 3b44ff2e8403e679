// An interactive chart of a figure. It supports mouse, touch and keyboard for the
// cursor and for zoom, and announces its values to screen readers.
import uPlot from "uplot";
import { axes, rightPadding, scales } from "./axes";
import { colors, onScheme, type Colors } from "./colors";
import type { Figure } from "./figure";
import { listen } from "./gestures";
import type { Group, Member } from "./group";
import { paintHeat } from "./heat";
import { handleKey } from "./keys";
import { aligned, places } from "./lines";
import { drawMarks, drawPoints, fillBand, fillColumns, fillZones, goesBack, lineThrough, nameZones } from "./paint";
import { Overlay } from "./overlay";
import { Parts } from "./parts";
import { middles, readout, snap, stops, words } from "./readout";
import { View } from "./view";
import "uplot/dist/uPlot.min.css";
import "./chart.css";

export interface Options {
  /** group: the charts that share cursor and zoom with this chart; see Groups. */
  group?: Group;
  /** describedBy: id of the element with the description of the chart. */
  describedBy?: string;
}

/** Chart draws one figure into an element of the page. */
export class Chart implements Member {
  private u: uPlot | null = null;
  private overlay: Overlay | null = null;
  private colors: Colors = colors();
  private view: View;
  private at: number | null = null; // the stop at the cursor
  private atY: number | null = null;
  private byKey = false; // the keyboard placed the cursor
  private readonly hidden = new Set<number>();
  private readonly parts = new Parts();
  private readonly cleanups: (() => void)[] = [];

  /** The constructor appends the chart to parent, with the same width. The caller must not change f until update. */
  constructor(parent: HTMLElement, private f: Figure, private readonly options: Options = {}) {
    this.view = new View(f, options.group?.range ?? null);
    parent.append(this.parts.root);
    if (options.describedBy) this.parts.plot.setAttribute("aria-describedby", options.describedBy);
    this.parts.reset.addEventListener("click", () => this.reset());
    this.parts.plot.addEventListener("keydown", (e) => this.key(e));
    this.parts.plot.addEventListener("blur", () => this.select(null, null, true));
    this.build();
    const size = new ResizeObserver(() => this.resize());
    size.observe(this.parts.plot);
    this.cleanups.push(() => size.disconnect());
    this.cleanups.push(onScheme(() => {
      this.colors = colors();
      this.parts.fill(this.f, this.hidden, this.colors, this.toggle);
      this.u?.redraw(false, true);
    }));
    if (options.group) this.cleanups.push(options.group.join(this));
  }

  /** update shows new data, such as the data of the next second; hidden lines, zoom and cursor are unchanged. */
  update(f: Figure): void {
    const same = structure(f) === structure(this.f);
    this.f = f;
    this.view = new View(f, this.view.zoomed);
    if (same && this.u) {
      this.u.setData(this.data(), false);
      this.show();
    } else this.build();
    this.select(this.at, this.atY, false);
  }

  /** destroy removes the chart from the page. */
  destroy(): void {
    for (const cleanup of this.cleanups) cleanup();
    this.u?.destroy();
    this.parts.root.remove();
  }

  /** point, of Member: another chart of the group has moved its cursor. */
  point(x: number | null): void {
    this.at = x === null ? null : snap(stops(this.f, this.hidden), x);
    this.atY = null;
    this.draw(false);
  }

  /** zoomTo, of Member: another chart of the group was zoomed. */
  zoomTo(range: [number, number] | null): void {
    this.view.setX(range);
    this.show();
  }

  private build(): void {
    this.u?.destroy();
    for (const i of this.hidden) if (i >= (this.f.lines?.length ?? 0)) this.hidden.delete(i);
    this.parts.fill(this.f, this.hidden, this.colors, this.toggle);
    const lines = this.f.lines ?? [];
    const emptySeries: uPlot.Series = { paths: () => null, points: { show: false }, auto: false };
    const u = new uPlot({
      ...this.size(), padding: [this.f.zones?.some((z) => z.name) ? 22 : 10, (u) => rightPadding(u, this.f, this.view), 0, 0], legend: { show: false },
      scales: scales(this.f, () => this.view), axes: axes(() => this.f, () => this.colors),
      series: [{}, ...(lines.length > 0 ? lines.map((_, i) => this.series(i)) : [emptySeries])],
      cursor: {
        x: false, y: false, points: { show: false }, drag: { x: true, y: true, uni: 24, dist: 6, setScale: false },
        bind: { dblclick: () => null },
      },
      hooks: {
        drawClear: [(u) => this.drawUnder(u)],
        draw: [(u) => this.drawOver(u)],
        setSelect: [(u) => this.zoomToSelection(u)],
        setSize: [() => this.draw(false)],
      },
    }, this.data(), this.parts.plot);
    this.u = u;
    this.overlay = new Overlay(u, this.parts.box);
    listen(u.over, {
      point: (left, top) => this.select(snap(stops(this.f, this.hidden), u.posToVal(left, "x")), u.posToVal(top, "y"), false),
      leave: () => {
        if (!this.byKey) this.select(null, null, false);
      },
      pinch: (from, to) => this.zoom(this.view.pinched(from.map((p) => u.posToVal(p, "x")), to, u.over.clientWidth), null),
      reset: () => this.reset(),
    });
  }

  private series(i: number): uPlot.Series {
    const line = this.f.lines![i]!;
    return {
      show: !this.hidden.has(i), width: 2, points: { show: false }, auto: false,
      stroke: () => this.colors.lines[this.f.lines![i]!.color % this.colors.lines.length]!,
      ...(line.dash ? { dash: [6, 4] } : {}),
      ...(line.loose ? { paths: () => null } : goesBack(line) ? { paths: (u: uPlot) => lineThrough(u, this.f.lines![i]!) } : {}),
    };
  }

  private data(): uPlot.AlignedData {
    if (this.f.heat || this.f.columns?.length) {
      const at = this.f.heat ? middles(this.f.heat.x) : this.f.columns!.map((c) => (c.from + c.to) / 2);
      return [at, at.map(() => null)];
    }
    const lines = this.f.lines ?? [];
    const at = places(lines);
    if (at.length === 0) return [[this.f.x.min, this.f.x.max], [null, null], ...lines.slice(1).map(() => [null, null])];
    return [at, ...lines.map((l) => aligned(l, at))] as uPlot.AlignedData;
  }

  /** drawUnder paints the layers behind the axes. */
  private drawUnder(u: uPlot): void {
    clipped(u, () => {
      fillZones(u, this.f, this.colors);
      if (this.f.heat) paintHeat(u, this.f, this.colors.dark);
      (this.f.lines ?? []).forEach((l, i) => {
        if (!this.hidden.has(i)) fillBand(u, l, this.colors.lines[l.color % this.colors.lines.length]!);
      });
    });
  }

  /** drawOver paints columns, dots and marks on top of the lines. */
  private drawOver(u: uPlot): void {
    clipped(u, () => {
      fillColumns(u, this.f, this.colors.lines[0]!);
      (this.f.lines ?? []).forEach((l, i) => {
        if (!this.hidden.has(i)) drawPoints(u, l, this.colors.lines[l.color % this.colors.lines.length]!);
      });
      drawMarks(u, this.f, this.colors);
    });
    u.ctx.save();
    nameZones(u, this.f, this.colors);
    u.ctx.restore();
  }

  private size(): { width: number; height: number } {
    const width = Math.max(200, this.parts.plot.clientWidth);
    return { width, height: Math.round(Math.min(380, Math.max(220, width * 0.52))) };
  }

  private resize(): void {
    const size = this.size();
    if (this.u && (size.width !== this.u.width || size.height !== this.u.height)) this.u.setSize(size);
  }

  /** select moves the cursor to the stop x and notifies the group. */
  private select(x: number | null, y: number | null, announced: boolean): void {
    this.at = x;
    this.atY = y;
    this.byKey = announced && x !== null;
    this.draw(true);
    if (announced) this.announce();
    this.options.group?.point(this, x);
  }

  private draw(box: boolean): void {
    const r = this.at === null ? null : readout(this.f, this.hidden, this.at, this.atY);
    if (r) this.overlay?.show(this.f, r, this.colors, box);
    else this.overlay?.hide();
  }

  /** announce sends the values at the cursor to screen readers. */
  private announce(): void {
    const r = this.at === null ? null : readout(this.f, this.hidden, this.at, this.atY);
    this.parts.live.textContent = r ? words(r) : "";
  }

  /** zoomToSelection zooms to the rectangle that was dragged. */
  private zoomToSelection(u: uPlot): void {
    const { left, top, width, height } = u.select;
    if (width <= 0 && height <= 0) return;
    const x: [number, number] | null = width < u.over.clientWidth ? [u.posToVal(left, "x"), u.posToVal(left + width, "x")] : null;
    const y: [number, number] | null = height < u.over.clientHeight ? [u.posToVal(top + height, "y"), u.posToVal(top, "y")] : null;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoom(x ?? this.view.x, y);
  }

  private zoom(x: [number, number], y: [number, number] | null): void {
    this.view.setX(x);
    if (y) this.view.setY(y);
    this.show();
    this.options.group?.zoomTo(this, this.view.zoomed);
  }

  private reset(): void {
    this.view.reset();
    this.show();
    this.options.group?.zoomTo(this, null);
  }

  private show(): void {
    const u = this.u;
    if (!u) return;
    this.parts.reset.hidden = !this.view.narrowed;
    u.batch(() => {
      u.setScale("x", { min: this.view.x[0], max: this.view.x[1] });
      u.setScale("y", { min: this.view.y[0], max: this.view.y[1] });
    });
    this.draw(false);
  }

  private readonly toggle = (i: number): void => {
    if (!this.hidden.delete(i)) this.hidden.add(i);
    this.u?.setSeries(i + 1, { show: !this.hidden.has(i) });
    this.draw(false);
  };

  private key(e: KeyboardEvent): void {
    const all = stops(this.f, this.hidden).filter((x) => x >= this.view.x[0] && x <= this.view.x[1]);
    const handled = handleKey(e, {
      count: all.length,
      now: this.at === null ? -1 : all.indexOf(this.at),
      go: (i) => this.select(all[i] ?? null, null, true),
      zoom: (factor) => this.zoom(this.view.scaled(factor, this.at), null),
      reset: () => (this.view.narrowed ? this.reset() : this.select(null, null, true)),
    });
    if (handled) e.preventDefault();
  }
}

/** structure returns equal keys for figures that differ in their data only. */
function structure(f: Figure): string {
  return JSON.stringify([f.x.base ?? 0, f.y.base ?? 0, !!f.heat, f.columns?.length ?? 0, f.zones?.some((z) => z.name) ?? false,
    (f.lines ?? []).map((l) => [l.name, l.color, l.dash, l.dots, l.loose, goesBack(l)]), f.x.label, f.y.label, f.stamp]);
}

function clipped(u: uPlot, paint: () => void): void {
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(u.bbox.left - 12, u.bbox.top - 12, u.bbox.width + 24, u.bbox.height + 24);
  u.ctx.clip();
  paint();
  u.ctx.restore();
}
