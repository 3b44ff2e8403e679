// The state of all sites and links, polled periodically, with the rates since the
// page was opened.
import type { Figure, Line } from "./figure";
import { bits as showBits } from "./format";
import { bits, most, scaled, time } from "./live_axes";
import { links, now, sites, type TransferEvent, type Link, type Site } from "./transfer_api";
import { Poll } from "./transfer_poll";

const pollInterval = 2000;
const maxPoints = 1800; // points of a line: an hour
const maxEvents = 30; // events in the store
const maxLines = 6; // links with a separate line

/** RateSeries holds the rates of a link at the times of the polls. */
interface RateSeries {
  name: string;
  y: number[];
}

/** SiteStore holds sites, links, recent events and the history of the rates. */
export class SiteStore {
  sites: Site[] = [];
  links: Link[] = [];
  loaded = false; // sites and links were received at least once
  events: TransferEvent[] = []; // newest first
  private readonly poll: Poll;
  private at: number[] = []; // seconds since the first poll
  private readonly series = new Map<string, RateSeries>();
  private begin = 0;

  constructor(private readonly onChange: () => void, private readonly onError: (err: unknown) => void) {
    this.poll = new Poll(() => this.load(), 1000);
  }

  /** addEvent adds an event as the newest event. */
  addEvent(e: TransferEvent): void {
    this.events = [e, ...this.events.slice(0, maxEvents - 1)];
  }

  refresh(): void {
    this.poll.refresh();
  }

  private async load(): Promise<number> {
    try {
      [this.sites, this.links] = await Promise.all([sites(), links()]);
      this.loaded = true;
      this.record();
      this.onChange();
    } catch (err) {
      this.onError(err);
    }
    return pollInterval;
  }

  private record(): void {
    this.begin ||= now();
    this.at.push((now() - this.begin) / 1000);
    for (const l of this.links) {
      const key = JSON.stringify([l.source, l.dest]);
      let t = this.series.get(key);
      if (!t) this.series.set(key, (t = { name: l.source + " → " + l.dest, y: [] }));
      while (t.y.length < this.at.length - 1) t.y.push(0);
      t.y[this.at.length - 1] = l.rate_bytes_per_second;
    }
    for (const t of this.series.values()) if (t.y.length < this.at.length) t.y.push(0);
    if (this.at.length <= maxPoints) return;
    this.at.shift();
    for (const [key, t] of this.series) {
      t.y.shift();
      if (t.y.every((v) => v === 0)) this.series.delete(key);
    }
  }

  get rate(): number {
    return this.links.reduce((sum, l) => sum + l.rate_bytes_per_second, 0);
  }

  /** figure plots the rate of each link; if there are many links, it plots the busiest links and the sum of the remaining links. */
  figure(): Figure | null {
    const busy = [...this.series.values()].map((t) => ({ ...t, sum: t.y.reduce((a, b) => a + b, 0) })).filter((t) => t.sum > 0);
    if (this.at.length < 2 || busy.length === 0) return null;
    busy.sort((a, b) => b.sum - a.sum);
    const first = busy.slice(0, busy.length > maxLines ? maxLines - 1 : maxLines);
    const rest = busy.slice(first.length);
    const lines: Line[] = first.sort((a, b) => a.name.localeCompare(b.name)).map((t, i) => ({ name: t.name, color: i, x: this.at, y: t.y }));
    if (rest.length > 0) lines.push({ name: rest.length + " other links", color: maxLines - 1, dash: true, x: this.at, y: this.at.map((_, i) => rest.reduce((a, t) => a + t.y[i]!, 0)) });
    return chart("links", "Rate of each link", lines, this.at, showBits(this.rate) + " in total now. Rates are smoothed over some seconds.");
  }
}

/** chart returns a plot of rates since the page was opened. */
export function chart(id: string, title: string, lines: Line[], at: number[], desc: string): Figure {
  const top = most(...lines.map((l) => l.y));
  const x = time(at.at(-1) ?? 0);
  x.min = at[0] ?? 0;
  x.label = x.label.replace("the start", "this page was opened");
  return { id, title, desc, x, y: scaled(bits(top), top), lines: lines.map((l) => ({ ...l, x: [...l.x], y: [...l.y] })) };
}
