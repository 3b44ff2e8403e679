// The data of the run on the page, assembled from the server's messages. A message
// contains new data only, so columns grow at their end.
import type { Figure } from "./figure";

export type Numbers = (number | null)[];

/** Block holds rows of a table, from row number from on. */
export interface Block {
  kind?: string;
  name?: string;
  from: number;
  at: number[];
  cols: Record<string, Numbers>;
}

export interface About {
  dir: string;
  run: string;
  name: string;
  target: string;
  work: string;
  start: string;
  model: string;
  search?: boolean;
  weir: string;
}

export interface Now {
  state: "waiting" | "preparing" | "running" | "ended" | "broken";
  time: number;
  start: number;
  step: number;
  place: number;
  of: number;
  clients: number;
  phase: string;
  left: number;
  at_most?: boolean;
  share: number;
  report?: boolean;
  seconds: number;
  problem?: string;
  last?: string;
  workers?: string;
}

export interface HostNow {
  name: string;
  role: string;
  cores: number;
  at: number;
  now: Numbers; // in the order of hostColumns
}

/** hostColumns lists the names of the columns of HostNow.now. */
export const hostColumns = ["cpu", "iowait", "server", "client", "disk_busy", "read", "write", "received", "sent"] as const;

export interface Store {
  name: string;
  moved: number;
  done: number;
  of: number;
  now: number;
}

export interface Step {
  step: number;
  clients: number;
  rate?: number;
  planned: number;
  held: number;
  broken?: boolean;
  moved: number;
  done: number;
  errors: number;
  failing?: number;
  p50?: number;
  p90?: number;
  p99?: number;
}

export interface RunEvent {
  time: string;
  event: string;
  step?: number;
  text: string;
}

export interface Failure {
  class: string;
  count: number;
  texts: { time: string; text: string }[];
}

export interface FoundStep {
  step: number;
  clients: number;
  low: number | null;
  high: number | null;
  steady: boolean | null;
  server: number | null;
  client: number | null;
  best?: boolean;
}

export interface Found {
  at: string;
  cost: number;
  until: number;
  final?: boolean;
  problem?: string;
  status: string;
  headline: string;
  facts: string[] | null;
  search?: string;
  checks: { name: string; status: string; detail: string }[] | null;
  notes: { check: string; text: string }[] | null;
  warnings: string[] | null;
  steps: FoundStep[] | null;
  bottleneck: { resource: string; host: string; from: number; evidence: string[] }[] | null;
  thresholds: { threshold: string; met: boolean; detail: string }[] | null;
  curve: Figure[] | null;
}

export interface Entry {
  key: string;
  name: string;
}

/** Message is one event of the server. Absent fields are unchanged. */
export interface Message {
  reset?: boolean;
  run?: About;
  runs?: Entry[];
  shown?: string;
  now: Now;
  rows?: Block;
  sides?: Block;
  hosts: HostNow[] | null; // only the busiest hosts of a large run
  count: number; // number of all hosts
  stores: Store[] | null;
  tracks?: Block[];
  steps?: Step[];
  events?: RunEvent[];
  errors?: Failure[];
  found?: Found;
  links?: Links;
  rates?: Block;
}

/** Links holds the links of a data challenge that have changed; their rows refer to sites and reasons by index. */
export interface Links {
  stage: number;
  sites: string[];
  reasons: string[];
  rows: number[][]; // index, source, destination, target, achieved, in flight, queued, done, failed, reason
}

/** Link is the newest state of a link; target and achieved are means of the last minute, in bytes per second. */
export interface Link {
  source: string;
  dest: string;
  target: number;
  achieved: number;
  flight: number;
  queued: number;
  done: number;
  failed: number;
  reason: string;
}

/** Table holds columns against time. */
export class Table {
  at: number[] = [];
  cols: Record<string, Numbers> = {};

  /** take replaces the rows from the block's first row on by the rows of the block. */
  take(b: Block): void {
    cut(this.at, b.from, b.at);
    for (const [name, values] of Object.entries(b.cols)) {
      const col = (this.cols[name] ??= Array<null>(Math.min(b.from, this.at.length)).fill(null));
      cut(col, b.from, values);
    }
  }

  col(name: string): Numbers {
    return this.cols[name] ?? [];
  }
}

function cut<T>(to: T[], from: number, values: T[]): void {
  to.length = Math.min(to.length, from);
  for (const v of values) to.push(v); // no spread operator: an hour of seconds exceeds the limit of arguments
}

/** RunData holds all data of one run. */
export class RunData {
  about: About | null = null;
  now: Now | null = null;
  rows = new Table();
  middles: number[] = []; // middle of each row's interval, in seconds since the start
  sides = new Table();
  readonly hosts = new Map<string, Table>();
  readonly stores = new Map<string, Table>();
  hostList: HostNow[] = [];
  hostCount = 0;
  storeList: Store[] = [];
  readonly steps = new Map<number, Step>();
  events: RunEvent[] = [];
  readonly errors = new Map<string, Failure>();
  found: Found | null = null;
  readonly links: Link[] = []; // of a data challenge
  rates = new Table(); // of all links together
  stage = 0;

  /** take applies a message. */
  take(m: Message): void {
    if (m.run) this.about = m.run;
    this.now = m.now;
    if (m.rows) this.rowsFrom(m.rows);
    if (m.sides) this.sides.take(m.sides);
    this.hostList = m.hosts ?? [];
    this.hostCount = m.count;
    this.storeList = m.stores ?? [];
    for (const b of m.tracks ?? []) {
      const of = b.kind === "store" ? this.stores : this.hosts;
      let t = of.get(b.name ?? "");
      if (!t) of.set(b.name ?? "", (t = new Table()));
      t.take(b);
    }
    for (const s of m.steps ?? []) this.steps.set(s.step, s);
    this.events.push(...(m.events ?? []));
    if (this.events.length > 600) this.events.splice(0, this.events.length - 300);
    for (const e of m.errors ?? []) this.errors.set(e.class, e);
    if (m.found) this.found = m.found;
    if (m.links) this.linksFrom(m.links);
    if (m.rates) this.rates.take(m.rates);
  }

  private linksFrom(l: Links): void {
    this.stage = l.stage;
    for (const [i, s, d, target, achieved, flight, queued, done, failed, why] of l.rows) {
      this.links[i!] = {
        source: l.sites[s!] ?? "", dest: l.sites[d!] ?? "", target: target!, achieved: achieved!, flight: flight!, queued: queued!,
        done: done!, failed: failed!, reason: l.reasons[why!] ?? "",
      };
    }
  }

  private rowsFrom(b: Block): void {
    this.rows.take(b);
    const seconds = this.rows.col("seconds");
    this.middles.length = Math.min(this.middles.length, b.from);
    for (let i = this.middles.length; i < this.rows.at.length; i++) this.middles.push(this.rows.at[i]! + (seconds[i] ?? 0) / 2);
  }

  /** last returns the newest value of a column of the rows. */
  last(name: string): number | null {
    return this.rows.col(name).at(-1) ?? null;
  }

  /** columnsOf returns the sorted names of the columns with a prefix, such as "kind" or "class". */
  columnsOf(prefix: string): string[] {
    return Object.keys(this.rows.cols).filter((n) => n.startsWith(prefix + " ")).sort();
  }
}
