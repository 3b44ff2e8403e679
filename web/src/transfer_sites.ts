// The view of sites: their states, their free space and their current copies.
import { el, write } from "./dom";
import type { Site } from "./transfer_api";
import type { AppContext, View } from "./transfer_context";
import { noSites } from "./transfer_overview";
import { link, DataTable, text, type Column } from "./transfer_table";
import { ago, freeSpace, rate, showStatus, when, whole } from "./transfer_text";

/** Sites is the view of all sites. */
export class Sites implements View {
  readonly root = el("div");
  readonly title = "Sites";
  private readonly none = el("div");
  private readonly rows: DataTable<Site>;

  constructor(private readonly app: AppContext) {
    this.rows = new DataTable("Sites", (s) => s.name, this.columns());
    this.root.append(el("h1", "first", this.title), this.rows.root, this.none);
    this.onRefresh();
  }

  onEvent(): void {
    // events concern requests only
  }

  onRefresh(): void {
    const p = this.app.store;
    if (!p.loaded) return;
    this.rows.show(p.sites);
    if (p.sites.length > 0) this.none.replaceChildren();
    else if (this.none.childElementCount === 0) this.none.append(noSites());
  }

  close(): void {
    // the view has no requests of its own
  }

  private columns(): Column<Site>[] {
    const sum = (s: Site, end: "source" | "dest", of: "active" | "rate_bytes_per_second"): number => this.app.store.links.reduce((n, l) => n + (l[end] === s.name ? l[of] : 0), 0);
    return [
      link("site", (s) => s.name, (s) => "#/sites/" + encodeURIComponent(s.name), "l name strong bare"),
      { head: "state", kind: "l bare", fill: (td, s) => showStatus(td, s.up ? "up" : "down") },
      text("free space", freeSpace, "r"),
      text("copies in", (s) => String(sum(s, "dest", "active")), "r"),
      text("in", (s) => rate(sum(s, "dest", "rate_bytes_per_second")), "r"),
      text("copies out", (s) => String(sum(s, "source", "active")), "r"),
      text("out", (s) => rate(sum(s, "source", "rate_bytes_per_second")), "r"),
      text("limit", (s) => (s.max ? whole(s.max) : "no limit"), "r wide"),
      text("kind", (s) => s.kind, "l wide"),
      { head: "last seen", kind: "l wide", fill: (td, s) => {
        write(td, ago(s.seen));
        td.title = when(s.seen);
      } },
      text("endpoint", (s) => s.url || "none", "l wide name"),
      { head: "problem", kind: "l name reason", fill: (td, s) => {
        write(td, s.problem ?? "");
        td.className = "l name reason fail";
      } },
    ];
  }
}
