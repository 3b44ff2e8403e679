// The view of one site: the load of its host, and its links.
import { el, write } from "./dom";
import type { Axis, Figure, Line } from "./figure";
import { bits as showBits, bytes, percent as showPercent } from "./format";
import { bits, decimal, linear, most, percent, scaled, time } from "./live_axes";
import { Charts } from "./live_charts";
import { Group } from "./group";
import { now, samples, type Link, type Sample } from "./transfer_api";
import type { AppContext, View } from "./transfer_context";
import { Poll, status } from "./transfer_poll";
import { linkColumns } from "./transfer_links";
import { DataTable } from "./transfer_table";
import { ago, emptyState, freeSpace, timestamp, showStatus } from "./transfer_text";

const maxSamples = 3600; // samples of one second: an hour

/** OneSite is the view of one site. */
export class OneSite implements View {
  readonly root = el("div");
  readonly title: string;
  private readonly sign = el("span");
  private readonly facts = el("p", "meta name");
  private readonly problem = el("p", "fail");
  private readonly host = el("p", "state");
  private readonly none = el("div");
  private readonly charts = new Charts("host-", new Group());
  private readonly links = new DataTable<Link>("Links of the site", (l) => JSON.stringify([l.source, l.dest]), linkColumns);
  private readonly linkPart = el("section", "", "", el("h2", "", "Links"), this.links.root);
  private list: Sample[] = [];
  private readonly poll: Poll;

  constructor(private readonly app: AppContext, private readonly name: string) {
    this.title = name;
    this.problem.setAttribute("role", "alert");
    this.root.append(el("div", "title-row", "", el("h1", "first name", name), this.sign), this.facts, this.problem, this.host, this.charts.root, this.none, this.linkPart);
    this.poll = new Poll(() => this.load());
    this.onRefresh();
  }

  onEvent(): void {
    // events concern requests only
  }

  onRefresh(): void {
    const p = this.app.store;
    if (!p.loaded) return;
    const s = p.sites.find((s) => s.name === this.name);
    write(this.problem, s ? s.problem ?? "" : "Site not found.");
    if (s) {
      showStatus(this.sign, s.up ? "up" : "down");
      write(this.facts, [s.kind === "agent" ? "an agent" : "a storage server with third-party copies", s.url ? "endpoint " + s.url : "no endpoint", freeSpace(s) + " free", s.max ? "at most " + s.max + " concurrent copies" : "", "last seen " + ago(s.seen)].filter((t) => t).join(" · "));
      if (s.kind !== "agent" && this.none.childElementCount === 0) this.none.append(emptyState("No metrics of this site's host.", "Only agents of weir report them."));
    }
    const links = p.links.filter((l) => l.source === this.name || l.dest === this.name);
    this.links.show(links);
    this.linkPart.hidden = links.length === 0;
  }

  close(): void {
    this.poll.stop();
  }

  private async load(): Promise<number> {
    try {
      const last = timestamp(this.list.at(-1)?.time);
      const more = await samples(this.name, last || now() - 1000 * maxSamples, maxSamples);
      this.list.push(...more.filter((s) => timestamp(s.time) > last));
      if (this.list.length > maxSamples) this.list.splice(0, this.list.length - maxSamples);
      this.render();
    } catch (err) {
      if (status(err) !== 404) this.app.handleError(err);
      return 10_000;
    }
    return 2000;
  }

  private render(): void {
    const latest = this.list.at(-1);
    if (!latest) return;
    write(this.host, [showPercent(latest.cpu) + " of " + latest.cores + (latest.cores === 1 ? " core busy" : " cores busy"), showPercent(latest.memory) + " of " + bytes(latest.memory_bytes) + " memory used", latest.running + (latest.running === 1 ? " running copy" : " running copies")].join(" · "));
    const first = timestamp(this.list[0]!.time);
    const at = this.list.map((s) => (timestamp(s.time) - first) / 1000);
    const x = time(at.at(-1)!);
    x.label = x.label.replace("the start", "the first sample");
    const of = (name: string, color: number, pick: (s: Sample) => number): Line => ({ name, color, x: at, y: this.list.map(pick) });
    const figure = (id: string, title: string, desc: string, y: (top: number) => Axis, ...lines: Line[]): Figure => ({ id, title, desc, x, y: y(most(...lines.map((l) => l.y))), lines });
    const rate = (top: number): Axis => scaled(bits(top), top);
    this.charts.show([
      figure("moved", "Copies by the agent", showBits(latest.moved_bytes_per_second) + " now. Other clients of its endpoint appear in the network chart only.", rate, of("moved", 0, (s) => s.moved_bytes_per_second)),
      figure("cpu", "CPU and memory", "Shares of the host's total.", () => linear("%", percent, 1), of("CPU", 0, (s) => s.cpu), of("memory", 1, (s) => s.memory)),
      figure("network", "Network", "All interfaces of the host.", rate, of("received", 0, (s) => s.received_bytes_per_second), of("sent", 1, (s) => s.sent_bytes_per_second)),
      figure("disk", "Disks", "All disks of the host.", (top) => scaled(decimal(top, "B/s"), top), of("read", 0, (s) => s.read_bytes_per_second), of("written", 1, (s) => s.write_bytes_per_second)),
    ]);
  }
}
