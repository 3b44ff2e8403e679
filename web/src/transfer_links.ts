// The view of links: their rates, their limits of concurrent copies and the reasons for these limits.
import { el } from "./dom";
import { Charts } from "./live_charts";
import type { Link } from "./transfer_api";
import type { AppContext, View } from "./transfer_context";
import { link, DataTable, text, type Column } from "./transfer_table";
import { command, emptyState, rate, whole } from "./transfer_text";
import { percent } from "./format";

/** linkColumns are the columns of a table of links. */
export const linkColumns: Column<Link>[] = [
  link("from", (l) => l.source, (l) => "#/sites/" + encodeURIComponent(l.source), "l name strong"),
  link("to", (l) => l.dest, (l) => "#/sites/" + encodeURIComponent(l.dest), "l name strong"),
  text("rate", (l) => rate(l.rate_bytes_per_second), "r"),
  text("active", (l) => whole(l.active), "r"),
  text("limit", (l) => whole(l.limit), "r"),
  text("success", (l) => percent(l.success), "r"),
  text("reason for the limit", (l) => l.why, "l reason name"),
];

/** Links is the view of all links. */
export class Links implements View {
  readonly root = el("div");
  readonly title = "Links";
  private readonly rows = new DataTable<Link>("Links", (l) => JSON.stringify([l.source, l.dest]), linkColumns);
  private readonly charts = new Charts("rate-");
  private readonly none = el("div");

  constructor(private readonly app: AppContext) {
    this.root.append(el("h1", "first", this.title), this.charts.root, this.rows.root, this.none);
    this.onRefresh();
  }

  onEvent(): void {
    // events concern requests only
  }

  onRefresh(): void {
    const p = this.app.store;
    if (!p.loaded) return;
    this.rows.show([...p.links].sort((a, b) => b.rate_bytes_per_second - a.rate_bytes_per_second || b.active - a.active || a.source.localeCompare(b.source) || a.dest.localeCompare(b.dest)));
    this.charts.show([p.figure()]);
    if (p.links.length > 0) this.none.replaceChildren();
    else if (this.none.childElementCount === 0) this.none.append(emptyState("No links yet.", "A link connects a source site to a destination site. It appears with the first request for a transfer between them:", command("weir transfer submit /store/run1 --to B --approve --wait")));
  }

  close(): void {
    // the view has no requests of its own
  }
}
