// The view of sites: which are up, how much room they have, what their hosts do.
import { el, write } from "./dom";
import type { Site } from "./transfer_api";
import type { Desk, View } from "./transfer_desk";
import { noSites } from "./transfer_overview";
import { link, Rows, text, type Column } from "./transfer_rows";
import { ago, free, rate, stamp, when, whole } from "./transfer_words";

/** Sites is the view. */
export class Sites implements View {
  readonly root = el("div");
  readonly title = "Sites";
  private readonly none = el("div");
  private readonly rows: Rows<Site>;

  constructor(private readonly desk: Desk) {
    this.rows = new Rows("Sites", (s) => s.name, this.columns());
    this.root.append(this.rows.root, this.none);
    this.beat();
  }

  happened(): void {
    // events are of requests
  }

  beat(): void {
    const p = this.desk.pulse;
    if (!p.known) return;
    this.rows.show(p.sites);
    if (p.sites.length > 0) this.none.replaceChildren();
    else if (this.none.childElementCount === 0) this.none.append(noSites());
  }

  end(): void {
    // nothing goes on
  }

  private columns(): Column<Site>[] {
    const sum = (s: Site, end: "source" | "dest", of: "active" | "rate_bytes_per_second"): number => this.desk.pulse.links.reduce((n, l) => n + (l[end] === s.name ? l[of] : 0), 0);
    return [
      link("site", (s) => s.name, (s) => "#/sites/" + encodeURIComponent(s.name), "l name strong bare"),
      { head: "state", kind: "l bare", fill: (td, s) => stamp(td, s.up ? "up" : "down") },
      text("free space", free, "r"),
      text("copies in", (s) => String(sum(s, "dest", "active")), "r"),
      text("in", (s) => rate(sum(s, "dest", "rate_bytes_per_second")), "r"),
      text("copies out", (s) => String(sum(s, "source", "active")), "r"),
      text("out", (s) => rate(sum(s, "source", "rate_bytes_per_second")), "r"),
      text("at most", (s) => (s.max ? whole(s.max) : "no limit"), "r wide"),
      text("kind", (s) => s.kind, "l wide"),
      { head: "heard of", kind: "l wide", fill: (td, s) => {
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
