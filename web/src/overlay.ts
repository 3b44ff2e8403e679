// The overlay at the cursor of a chart: a line, dots and a box with values.
import type uPlot from "uplot";
import type { Colors } from "./colors";
import { el } from "./dom";
import type { Figure } from "./figure";
import type { Readout } from "./readout";

const mostRows = 12;

/** Overlay is the layer on top of a chart's plot. It ignores mouse events. */
export class Overlay {
  private readonly line: HTMLElement;
  private readonly box: HTMLElement;
  private dots: HTMLElement[] = [];

  constructor(private readonly u: uPlot, box: HTMLElement) {
    this.line = el("div", "chart-at");
    u.over.append(this.line);
    this.box = box;
    this.hide();
  }

  hide(): void {
    this.line.hidden = this.box.hidden = true;
    for (const d of this.dots) d.remove();
    this.dots = [];
  }

  /** show draws the cursor at r; box adds the box of values, for the chart with the pointer. */
  show(f: Figure, r: Readout, c: Colors, box: boolean): void {
    this.hide();
    const left = this.u.valToPos(r.x, "x");
    if (left < -1 || left > this.u.over.clientWidth + 1) return;
    this.line.hidden = false;
    this.line.style.transform = `translateX(${Math.round(left)}px)`;
    for (const row of r.rows) {
      const top = row.y === null ? -1 : this.u.valToPos(row.y, "y");
      if (row.y === null || top < -1 || top > this.u.over.clientHeight + 1 || (f.columns?.length ?? 0) > 0) continue;
      const d = el("div", "chart-dot");
      d.style.transform = `translate(${left}px,${top}px)`;
      d.style.background = row.line < 0 ? c.ink : c.lines[f.lines![row.line]!.color % c.lines.length]!;
      this.u.over.append(d);
      this.dots.push(d);
    }
    if (!box) return;
    const tops = r.rows.flatMap((row) => (row.y === null ? [] : [this.u.valToPos(row.y, "y")]));
    const high = tops.filter((top) => top < this.u.over.clientHeight / 2).length * 2 > tops.length;
    this.fill(f, r, c, left, high ? "bottom" : "top"); // the side with fewer dots
  }

  private fill(f: Figure, r: Readout, c: Colors, left: number, at: "top" | "bottom"): void {
    const { box } = this;
    box.replaceChildren(el("div", "chart-box-head", r.head));
    for (const row of r.rows.slice(0, mostRows)) {
      const p = el("div", "chart-box-row");
      box.append(p);
      if (row.line >= 0 && (f.lines?.length ?? 0) > 1) {
        const s = el("div", "swatch");
        p.append(s);
        s.style.background = c.lines[f.lines![row.line]!.color % c.lines.length]!;
      }
      p.append(el("span", "", row.name), el("b", "", row.value));
      if (row.note) box.append(el("div", "chart-box-note", row.note));
    }
    if (r.rows.length > mostRows) box.append(el("div", "chart-box-row", `and ${r.rows.length - mostRows} more`));
    box.hidden = false;
    // Place the box beside the line, on the side with more room, inside of the chart.
    const { over } = this.u;
    const place = over.offsetLeft + left;
    const room = box.parentElement!.clientWidth;
    const width = box.offsetWidth;
    const wanted = left < over.clientWidth / 2 ? place + 12 : place - width - 12;
    const down = at === "top" ? 4 : Math.max(4, over.clientHeight - box.offsetHeight - 4);
    box.style.transform = `translate(${Math.max(0, Math.min(wanted, room - width))}px,${over.offsetTop + down}px)`;
  }
}
