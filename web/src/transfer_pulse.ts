// What is asked all the while: sites and links, with the rates since the page
// was opened.
import type { Figure, Line } from "./figure";
import { bits as showBits } from "./format";
import { bits, most, scaled, time } from "./live_axes";
import { links, now, sites, type Happening, type Link, type Site } from "./transfer_api";
import { Poll } from "./transfer_poll";

const every = 2000;
const longest = 1800; // points of a line: an hour
const newest = 30; // events that are kept
const drawn = 6; // links with a line of their own

/** A Track is what a rate was at the times of the pulse. */
interface Track {
  name: string;
  y: number[];
}

/** A Pulse keeps sites, links and their past. */
export class Pulse {
  sites: Site[] = [];
  links: Link[] = [];
  known = false; // both were told at least once
  events: Happening[] = []; // the newest first
  private readonly poll: Poll;
  private at: number[] = []; // seconds since the first
  private readonly tracks = new Map<string, Track>();
  private begin = 0;

  constructor(private readonly told: () => void, private readonly lost: (err: unknown) => void) {
    this.poll = new Poll(() => this.ask(), 1000);
  }

  /** happened keeps an event. */
  happened(e: Happening): void {
    this.events = [e, ...this.events.slice(0, newest - 1)];
  }

  kick(): void {
    this.poll.kick();
  }

  private async ask(): Promise<number> {
    try {
      [this.sites, this.links] = await Promise.all([sites(), links()]);
      this.known = true;
      this.note();
      this.told();
    } catch (err) {
      this.lost(err);
    }
    return every;
  }

  private note(): void {
    this.begin ||= now();
    this.at.push((now() - this.begin) / 1000);
    for (const l of this.links) {
      const key = JSON.stringify([l.source, l.dest]);
      let t = this.tracks.get(key);
      if (!t) this.tracks.set(key, (t = { name: l.source + " → " + l.dest, y: [] }));
      while (t.y.length < this.at.length - 1) t.y.push(0);
      t.y[this.at.length - 1] = l.rate_bytes_per_second;
    }
    for (const t of this.tracks.values()) if (t.y.length < this.at.length) t.y.push(0);
    if (this.at.length <= longest) return;
    this.at.shift();
    for (const [key, t] of this.tracks) {
      t.y.shift();
      if (t.y.every((v) => v === 0)) this.tracks.delete(key);
    }
  }

  get rate(): number {
    return this.links.reduce((sum, l) => sum + l.rate_bytes_per_second, 0);
  }

  /** figure is the rate of each link; of many, those that moved most, and the others together. */
  figure(): Figure | null {
    const busy = [...this.tracks.values()].map((t) => ({ ...t, sum: t.y.reduce((a, b) => a + b, 0) })).filter((t) => t.sum > 0);
    if (this.at.length < 2 || busy.length === 0) return null;
    busy.sort((a, b) => b.sum - a.sum);
    const first = busy.slice(0, busy.length > drawn ? drawn - 1 : drawn);
    const rest = busy.slice(first.length);
    const lines: Line[] = first.sort((a, b) => a.name.localeCompare(b.name)).map((t, i) => ({ name: t.name, color: i, x: this.at, y: t.y }));
    if (rest.length > 0) lines.push({ name: rest.length + " others together", color: drawn - 1, dash: true, x: this.at, y: this.at.map((_, i) => rest.reduce((a, t) => a + t.y[i]!, 0)) });
    return chart("links", "Rate of each link", lines, this.at, showBits(this.rate) + " on all links together now. Rates are smoothed over some seconds.");
  }
}

/** chart is a plot of rates since the page was opened. */
export function chart(id: string, title: string, lines: Line[], at: number[], desc: string): Figure {
  const top = most(...lines.map((l) => l.y));
  const x = time(at.at(-1) ?? 0);
  x.min = at[0] ?? 0;
  x.label = x.label.replace("the start", "this page was opened");
  return { id, title, desc, x, y: scaled(bits(top), top), lines: lines.map((l) => ({ ...l, x: [...l.x], y: [...l.y] })) };
}
