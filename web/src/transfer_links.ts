// The view of links: their rates, and how many copies each may have and why.
import { el } from "./dom";
import { Charts } from "./live_charts";
import type { Link } from "./transfer_api";
import type { Desk, View } from "./transfer_desk";
import { link, Rows, text, type Column } from "./transfer_rows";
import { command, empty, rate, whole } from "./transfer_words";
import { percent } from "./format";

/** linkColumns are those of a table of links. */
export const linkColumns: Column<Link>[] = [
  link("from", (l) => l.source, (l) => "#/sites/" + encodeURIComponent(l.source), "l name strong"),
  link("to", (l) => l.dest, (l) => "#/sites/" + encodeURIComponent(l.dest), "l name strong"),
  text("rate", (l) => rate(l.rate_bytes_per_second), "r"),
  text("moving", (l) => whole(l.active), "r"),
  text("at most", (l) => whole(l.limit), "r"),
  text("succeed", (l) => percent(l.success), "r"),
  text("why so many", (l) => l.why, "l reason name"),
];

/** Links is the view. */
export class Links implements View {
  readonly root = el("div");
  readonly title = "Links";
  private readonly rows = new Rows<Link>("Links", (l) => JSON.stringify([l.source, l.dest]), linkColumns);
  private readonly charts = new Charts("rate-");
  private readonly none = el("div");

  constructor(private readonly desk: Desk) {
    this.root.append(this.charts.root, this.rows.root, this.none);
    this.beat();
  }

  happened(): void {
    // events are of requests
  }

  beat(): void {
    const p = this.desk.pulse;
    if (!p.known) return;
    this.rows.show([...p.links].sort((a, b) => b.rate_bytes_per_second - a.rate_bytes_per_second || b.active - a.active || a.source.localeCompare(b.source) || a.dest.localeCompare(b.dest)));
    this.charts.show([p.figure()]);
    if (p.links.length > 0) this.none.replaceChildren();
    else if (this.none.childElementCount === 0) this.none.append(empty("No link is known yet.", "A link is the way from one site to another. It is here as soon as a file was to go over it:", command("weir transfer submit /store/run1 --to B --approve --wait")));
  }

  end(): void {
    // nothing goes on
  }
}
