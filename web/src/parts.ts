// The elements of a chart around the canvas of uPlot, and their texts.
import type { Colors } from "./colors";
import { el } from "./dom";
import type { Figure } from "./figure";
import { heatLegend } from "./heat";
import { legend } from "./legend";

/** Parts holds the elements of one chart. */
export class Parts {
  readonly root = el("div", "chart");
  readonly plot = el("div", "chart-plot");
  readonly box = el("div", "chart-box");
  readonly live = el("div", "unseen");
  readonly reset = el("button", "chart-button chart-reset");
  private readonly legend = el("div", "legend");
  private readonly unit = el("span", "chart-unit");
  private readonly stamp = el("span");
  private readonly below = el("div", "chart-below");
  private readonly hint = el("p", "chart-hint");

  constructor() {
    this.reset.type = "button";
    this.reset.textContent = "Show all";
    this.reset.hidden = true;
    this.box.setAttribute("aria-hidden", "true");
    this.live.setAttribute("aria-live", "polite");
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "application");
    this.plot.setAttribute("aria-roledescription", "chart");
    this.hint.textContent = "Arrow keys go from point to point, + and - zoom, Escape shows all.";
    const top = el("div", "chart-top");
    top.append(this.unit, this.stamp);
    const wrap = el("div", "chart-wrap");
    wrap.append(this.plot, this.box, this.reset);
    this.root.append(this.legend, top, wrap, this.below, this.hint, this.live);
  }

  /** fill writes the texts and the legend of the chart. */
  fill(f: Figure, hidden: ReadonlySet<number>, c: Colors, toggle: (i: number) => void): void {
    this.plot.setAttribute("aria-label", f.title + ". " + this.hint.textContent);
    this.legend.replaceChildren(...(f.heat ? [heatLegend(f, c.dark)] : legend(f, hidden, toggle)));
    this.legend.hidden = this.legend.childElementCount === 0;
    this.unit.textContent = f.y.label;
    this.below.textContent = f.x.label;
    this.stamp.textContent = f.stamp ?? "";
    this.stamp.className = "chart-stamp " + (f.stamp ?? "").replace(/[^a-z]/g, "");
  }
}
