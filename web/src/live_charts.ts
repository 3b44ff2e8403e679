// The charts of the page. A chart is created with its first data and updated in place
// later; an update of an invisible chart is deferred until it becomes visible.
import { Chart } from "./chart";
import type { Figure } from "./figure";
import type { Group } from "./group";
import { el, write } from "./dom";

/** ChartSlot holds one chart with its title and description. */
class ChartSlot {
  readonly root = el("figure");
  private readonly description = el("figcaption");
  private readonly title = el("h3");
  private chart: Chart | null = null;
  private visible = true;
  private pending: Figure | null = null;

  constructor(private readonly prefix: string, private readonly group: Group | undefined, watch: IntersectionObserver) {
    this.root.append(this.title, this.description);
    watch.observe(this.root);
  }

  show(f: Figure): void {
    write(this.title, f.title);
    write(this.description, f.desc);
    this.root.id = this.prefix + f.id;
    if (!this.visible && this.chart) {
      this.pending = f;
      return;
    }
    this.pending = null;
    if (this.chart) this.chart.update(f);
    else {
      const into = el("div");
      this.root.insertBefore(into, this.description);
      this.chart = new Chart(into, f, this.group ? { group: this.group } : {});
    }
    this.root.dataset["points"] = String(Math.max(0, ...(f.lines ?? []).map((l) => l.x.length)));
  }

  setVisible(visible: boolean): void {
    this.visible = visible;
    if (visible && this.pending) this.show(this.pending);
  }

  destroy(): void {
    this.chart?.destroy();
    this.root.remove();
  }
}

/** Charts holds the charts of one part of the page. */
export class Charts {
  readonly root = el("div", "charts");
  private readonly slots = new Map<string, ChartSlot>();
  private readonly watch = new IntersectionObserver((all) => {
    for (const e of all) for (const s of this.slots.values()) if (s.root === e.target) s.setVisible(e.isIntersecting);
  }, { rootMargin: "200px" });

  /** prefix is prepended to the ids of figures to make them unique on the page. */
  constructor(private readonly prefix: string, private readonly group?: Group) {}

  /** show updates all charts; a new chart is inserted at its position in figures. */
  show(figures: (Figure | null)[]): void {
    const present = new Set<string>();
    let last: ChartSlot | null = null;
    for (const f of figures) {
      if (!f) continue;
      present.add(f.id);
      let s = this.slots.get(f.id);
      if (!s) {
        this.slots.set(f.id, (s = new ChartSlot(this.prefix, this.group, this.watch)));
        if (last) last.root.after(s.root);
        else this.root.prepend(s.root);
      }
      s.show(f);
      last = s;
    }
    for (const [id, s] of this.slots) {
      if (present.has(id)) continue;
      this.watch.unobserve(s.root);
      s.destroy();
      this.slots.delete(id);
    }
  }
}
