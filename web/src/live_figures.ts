// The plots against time, rebuilt each second from the grown columns. The columns are
// shared, not copied.
import type { Figure, Line, Zone } from "./figure";
import { count } from "./format";
import { bits, decimal, durations, least, linear, most, percent, scaled, time } from "./live_axes";
import type { RunData, Numbers } from "./live_data";

const measure = 2; // the server's number of the measuring phase

/** zones returns the time ranges with a constant load, with the load as their name. */
export function zones(d: RunData): Zone[] {
  const [at, steps, phases, spans] = [d.rows.at, d.rows.col("step"), d.rows.col("phase"), d.rows.col("seconds")];
  const all: Zone[] = [];
  let step: number | null = null;
  let before: number | null = null;
  for (let i = 0; i < at.length; i++) {
    if (phases[i] === measure) {
      if (before !== measure || steps[i] !== step) all.push({ from: at[i]!, to: at[i]!, name: load(d, steps[i] ?? 0) });
      all.at(-1)!.to = at[i]! + (spans[i] ?? 0);
    }
    step = steps[i] ?? null;
    before = phases[i] ?? null;
  }
  return all;
}

function load(d: RunData, step: number): string {
  const s = d.steps.get(step);
  if (!s) return "";
  return s.rate ? count(s.rate) + "/s" : String(s.clients);
}

interface Shape {
  id: string;
  title: string;
  lines: Line[];
  y: Figure["y"];
  desc: string;
}

/** Frame holds the common parts of all plots of one moment. */
export interface Frame {
  d: RunData;
  x: Figure["x"];
  zones: Zone[];
}

export const frame = (d: RunData): Frame => ({
  d, x: time(d.now?.time ?? 0), zones: zones(d),
});

const figure = (f: Frame, s: Shape): Figure => ({ ...s, x: f.x, zones: f.zones });

const line = (name: string, color: number, x: number[], y: Numbers, dash = false): Line => ({ name, color: color % 6, x, y, ...(dash ? { dash } : {}) });

/** FigureBuilder returns a plot, or null if it has no data yet. */
export type FigureBuilder = (f: Frame) => Figure | null;

export const throughput: FigureBuilder = (f) => {
  const y = f.d.rows.col("throughput");
  const top = most(y);
  if (top === 0) return null;
  const each = populations(f.d, "moved").filter((p) => most(p.y) > 0);
  return figure(f, {
    id: "throughput", title: "Throughput", y: scaled(bits(top), top),
    lines: [line(each.length ? "all" : "throughput", 0, f.d.middles, y), ...each.map((p, i) => line(p.name, i + 1, f.d.middles, p.y))],
    desc: "Payload moved each second. Shaded: a load was held; the number is the load.",
  });
};

/** populations returns the columns of the populations of clients; it is empty if all clients have the same workload. */
function populations(d: RunData, of: "moved" | "done"): { name: string; y: Numbers }[] {
  return d.columnsOf(of).map((n) => ({ name: n.slice(of.length + 1), y: d.rows.col(n) }));
}

/** rates plots the operations of each population. */
export const rates: FigureBuilder = (f) => {
  const each = populations(f.d, "done");
  const top = most(...each.map((p) => p.y));
  if (top === 0) return null;
  return figure(f, {
    id: "populations", title: "Operations of each population", y: scaled(decimal(top, " ops/s"), top),
    lines: each.map((p, i) => line(p.name, i + 1, f.d.middles, p.y)),
    desc: "Operations that ended each second.",
  });
};

/** challenge plots the target and the rate of all links of a data challenge. */
export const challenge: FigureBuilder = (f) => {
  const { rates } = f.d;
  const [target, achieved] = [rates.col("target"), rates.col("achieved")];
  const top = most(target, achieved);
  if (top === 0) return null;
  return figure(f, {
    id: "challenge", title: "All links", y: scaled(bits(top), top),
    lines: [line("target", 1, rates.at, target, true), line("achieved", 0, rates.at, achieved)], desc: "Rates of all links together.",
  });
};

/** copies plots the copies of a data challenge that have not ended. */
export const copies: FigureBuilder = (f) => {
  const { rates } = f.d;
  const [flight, queued] = [rates.col("in_flight"), rates.col("queued")];
  const top = most(flight, queued);
  if (top === 0) return null;
  return figure(f, {
    id: "copies", title: "Copies", y: linear("copies", decimal(top, " copies"), top),
    lines: [line("in flight", 0, rates.at, flight), line("waiting at the service", 2, rates.at, queued)],
    desc: "Copies that were requested and have not ended, and those of them that the transfer service has not begun.",
  });
};

export const operations: FigureBuilder = (f) => {
  const kinds = f.d.columnsOf("kind");
  if (kinds.length === 0) return null;
  const cols = kinds.map((k) => f.d.rows.col(k));
  const names = kinds.map((k) => k.slice("kind ".length));
  const files = names.every((n) => n === "read" || n === "write");
  const requests = files && f.d.columnsOf("job").length > 0; // of jobs
  const noun = requests ? "Requests" : files ? "Files" : "Operations";
  const unit = requests ? "requests/s" : files ? "files/s" : "ops/s";
  const top = most(...cols);
  return figure(f, {
    id: "operations", title: files ? noun : "Operations of each kind", y: scaled(decimal(top, " " + unit), top),
    lines: names.map((n, i) => line(n, i, f.d.middles, cols[i]!)),
    desc: `${noun} that ended each second.`,
  });
};

export const clients: FigureBuilder = (f) => {
  const y = f.d.rows.col("clients");
  const top = most(y);
  const scale = decimal(top, " clients");
  return figure(f, {
    id: "clients", title: "Virtual clients", y: linear("clients", scale, top), lines: [line("clients", 3, f.d.middles, y)],
    desc: "Running virtual clients, mean of each second.",
  });
};

/** jobs plots the running and the computing jobs, in runs with jobs. */
export const jobs: FigureBuilder = (f) => {
  if (!f.d.columnsOf("job").includes("job running")) return null;
  const [running, computing] = [f.d.rows.col("job running"), f.d.rows.col("job computing")];
  const top = most(running, computing);
  if (top === 0) return null;
  return figure(f, {
    id: "jobs", title: "Running jobs", y: linear("jobs", decimal(top, " jobs"), top),
    lines: [line("running", 0, f.d.middles, running), line("computing", 2, f.d.middles, computing)],
    desc: "Running jobs, and those of them that computed, mean of each second.",
  });
};

/** outcomes plots the number of completed jobs, and of crashed or failed jobs. */
export const outcomes: FigureBuilder = (f) => {
  if (!f.d.columnsOf("job").includes("job running")) return null;
  const [done, lost] = [f.d.rows.col("job done"), f.d.rows.col("job lost")];
  const top = most(done, lost);
  if (top === 0) return null;
  return figure(f, {
    id: "outcomes", title: "Jobs that ended", y: scaled(decimal(top, " jobs/s"), top),
    lines: [line("completed", 0, f.d.middles, done), line("crashed or failed", 1, f.d.middles, lost)],
    desc: "Jobs that ended each second.",
  });
};

export const latency: FigureBuilder = (f) => {
  const cols = ["p50", "p90", "p99"].map((n) => f.d.rows.col(n));
  const top = most(...cols);
  if (top === 0) return null;
  return figure(f, {
    id: "latency", title: "Latency", y: durations("latency", least(...cols), top),
    lines: [line("p50", 0, f.d.middles, cols[0]!), line("p90", 1, f.d.middles, cols[1]!), line("p99", 2, f.d.middles, cols[2]!)],
    desc: "Duration of the operations that ended in each second.",
  });
};

export const errors: FigureBuilder = (f) => {
  const classes = f.d.columnsOf("class");
  if (classes.length === 0) return null;
  const cols = classes.map((c) => f.d.rows.col(c));
  const top = most(...cols);
  return figure(f, {
    id: "errors", title: "Errors by class", y: scaled(decimal(top, " errors/s"), top),
    lines: classes.map((c, i) => line(c.slice("class ".length), i, f.d.middles, cols[i]!)),
    desc: "Operations that failed each second.",
  });
};

/** storeName returns the display name of a data server. */
export const storeName = (name: string): string => (name === "" ? "the target itself" : name);

export const stores: FigureBuilder = (f) => {
  if (f.d.storeList.length < 2) return null;
  const shown = f.d.storeList.filter((s) => f.d.stores.has(s.name));
  const tables = shown.map((s) => f.d.stores.get(s.name)!);
  const cols = tables.map((t) => t.col("throughput"));
  const top = most(...cols);
  if (top === 0) return null;
  return figure(f, {
    id: "stores", title: "Data servers", y: scaled(bits(top), top),
    lines: shown.map((s, i) => line(storeName(s.name), i, tables[i]!.at, cols[i]!)),
    desc: `Payload of ${shown.length === f.d.storeList.length ? "each data server" : `the ${shown.length} busiest of ${f.d.storeList.length} data servers`}, each second.`,
  });
};

export const cpu: FigureBuilder = (f) => {
  const { sides } = f.d;
  const lines: Line[] = [];
  for (const [name, color] of [["server", 1], ["client", 0]] as const) {
    const y = sides.col(name);
    if (y.every((v) => v === null)) continue;
    lines.push(line(name + " processes", color, sides.at, y));
  }
  hostLines(f.d, "cpu", lines, 2, true, "");
  if (lines.length === 0) return null;
  return figure(f, {
    id: "cpu", title: "CPU", lines, y: linear("% of the machine's cores", percent, 1),
    desc: "Share of all cores of the machines: the processes of each side on all of its hosts and, dashed, whole hosts.",
  });
};

/** hostLines appends a line for each selected host with data. */
function hostLines(d: RunData, column: string, lines: Line[], color: number, dash: boolean, suffix: string): void {
  let i = 0;
  for (const [name, t] of d.hosts) {
    const y = t.col(column);
    if (y.some((v) => v !== null && v > 0)) lines.push(line(name + suffix, color + i, d.sides.at, alignTo(d.sides.at, t.at, y), dash));
    i++;
  }
}

/** alignTo moves the samples of a host from their own moments to the common seconds of all hosts: lines with the same x values are drawn ten times as fast. A second without a sample is a gap in the line. */
function alignTo(grid: number[], at: number[], y: Numbers): Numbers {
  const out: Numbers = new Array<null>(grid.length);
  for (let i = 0, k = 0; i < at.length && k < grid.length; i++) {
    while (k + 1 < grid.length && grid[k + 1]! <= at[i]!) k++;
    out[k] = y[i]!;
  }
  return out;
}

/** device plots both directions of a single host, or the sum of both directions for each of several hosts. */
function device(f: Frame, id: string, title: string, [one, two]: [string, string], names: [string, string], desc: string): Figure | null {
  const lines: Line[] = [];
  const single = f.d.hosts.size === 1;
  if (single) {
    hostLines(f.d, one, lines, 0, false, ": " + names[0]);
    hostLines(f.d, two, lines, 0, true, ": " + names[1]);
  } else {
    let i = 0;
    for (const [name, t] of f.d.hosts) {
      const other = t.col(two);
      const y = t.col(one).map((v, k) => (v === null ? null : v + (other[k] ?? 0)));
      if (most(y) > 0) lines.push(line(name, i, f.d.sides.at, alignTo(f.d.sides.at, t.at, y)));
      i++;
    }
  }
  if (lines.length === 0) return null;
  const top = most(...lines.map((l) => l.y));
  const some = f.d.hosts.size < f.d.hostCount ? ` ${f.d.hosts.size} of ${f.d.hostCount} hosts are drawn; select other hosts in the table of hosts.` : "";
  return figure(f, { id, title, lines, y: scaled(decimal(top, "B/s"), top), desc: `Bytes ${names[0]}${single ? " (solid)" : ""} and ${names[1]}${single ? " (dashed)" : ", together,"} ${desc} each second.` + some });
}

export const disks: FigureBuilder = (f) => device(f, "disks", "Disks", ["read", "write"], ["read", "written"], "by all disks of a host");

export const network: FigureBuilder = (f) => device(f, "network", "Network", ["received", "sent"], ["received", "sent"], "by all interfaces of a host (through its loopback interface, if that carried more)");
