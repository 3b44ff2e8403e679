// The charts of the page: made when there is something to see, then fed. A
// chart that is out of sight is fed when it comes into sight.
import { Chart } from "./chart";
import type { Figure } from "./figure";
import type { Group } from "./group";
import { el, write } from "./dom";

/** A Slot is the place of one chart, with its title and words. */
class Slot {
  readonly root = el("figure");
  private readonly words = el("figcaption");
  private readonly title = el("h3");
  private chart: Chart | null = null;
  private seen = true;
  private waits: Figure | null = null;

  constructor(private readonly prefix: string, private readonly group: Group | undefined, watch: IntersectionObserver) {
    this.root.append(this.title, this.words);
    watch.observe(this.root);
  }

  show(f: Figure): void {
    write(this.title, f.title);
    write(this.words, f.desc);
    this.root.id = this.prefix + f.id;
    if (!this.seen && this.chart) {
      this.waits = f;
      return;
    }
    this.waits = null;
    if (this.chart) this.chart.update(f);
    else {
      const into = el("div");
      this.root.insertBefore(into, this.words);
      this.chart = new Chart(into, f, this.group ? { group: this.group } : {});
    }
    this.root.dataset["points"] = String(Math.max(0, ...(f.lines ?? []).map((l) => l.x.length)));
  }

  sight(seen: boolean): void {
    this.seen = seen;
    if (seen && this.waits) this.show(this.waits);
  }

  end(): void {
    this.chart?.end();
    this.root.remove();
  }
}

/** Charts are those of one part of the page, in the order in which they were first shown. */
export class Charts {
  readonly root = el("div", "charts");
  private readonly slots = new Map<string, Slot>();
  private readonly watch = new IntersectionObserver((all) => {
    for (const e of all) for (const s of this.slots.values()) if (s.root === e.target) s.sight(e.isIntersecting);
  }, { rootMargin: "200px" });

  /** prefix makes the ids of figures those of the page's own. */
  constructor(private readonly prefix: string, private readonly group?: Group) {}

  /** show shows figures in their places; those of order keep it, however late they come. */
  show(figures: (Figure | null)[]): void {
    const there = new Set<string>();
    let last: Slot | null = null;
    for (const f of figures) {
      if (!f) continue;
      there.add(f.id);
      let s = this.slots.get(f.id);
      if (!s) {
        this.slots.set(f.id, (s = new Slot(this.prefix, this.group, this.watch)));
        if (last) last.root.after(s.root);
        else this.root.prepend(s.root);
      }
      s.show(f);
      last = s;
    }
    for (const [id, s] of this.slots) {
      if (there.has(id)) continue;
      this.watch.unobserve(s.root);
      s.end();
      this.slots.delete(id);
    }
  }
}
