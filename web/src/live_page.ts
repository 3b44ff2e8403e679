// The elements of the live page and the text of each.
import { bits, count, percent, seconds } from "./format";
import { Group } from "./group";
import { Charts } from "./live_charts";
import type { RunData, Entry, Found, Now } from "./live_data";
import { el, write } from "./dom";
import { Grid } from "./live_dom";
import * as figures from "./live_figures";
import * as links from "./live_links";
import * as tables from "./live_tables";

const fewHosts = 10;
const maxEvents = 100;

/** Selection receives the user's choice of a run and of hosts. */
export interface Selection {
  run(key: string): void;
  host(name: string, drawn: boolean): void;
}

/** Page holds the elements of the live page. */
export class Page {
  private readonly name = el("h1");
  private readonly about = el("p", "meta");
  private readonly connectionState = el("p", "wire");
  private readonly state = el("p", "state");
  private readonly problem = el("p", "fail");
  private readonly bar = el("div", "bar", "", el("div", "bar-full"));
  private readonly pick = el("select");
  private readonly picker = el("label", "picker", "Run ", this.pick);
  private readonly stamp = el("span", "stamp");
  private readonly sentence = el("span");
  private readonly basis = el("p", "meta");
  private readonly verdict = el("p", "verdict", "", this.stamp, this.sentence);
  private readonly facts = el("ul", "facts");
  private readonly search = el("p", "meta");
  private readonly report = el("a", "report", "Report");
  private readonly cards = el("div", "cards");
  private readonly thresholds = el("ul", "thresholds");
  private readonly limits = el("div", "limits");
  private readonly checks = el("ul", "checks");
  private readonly checked = el("details", "", "", el("summary", "", "Checks"), this.checks);
  private readonly curve = new Charts("load-");
  private readonly load = new Charts("load-");
  private readonly seconds = new Group();
  private readonly time = new Charts("time-", this.seconds);
  private readonly loadPart = el("details", "", "", el("summary", "", "More against the load"), this.load.root);
  private readonly matrix = new links.Matrix();
  private readonly linkGrid = new Grid(links.linkHeads, "Links");
  private readonly linkReasons = el("p", "meta reasons");
  private readonly linkPart: HTMLElement;
  private readonly steps = new Grid(tables.stepHeads, "Steps");
  private readonly hosts = new Grid(tables.hostHeads, "Hosts");
  private readonly stores = new Grid(tables.storeHeads, "Data servers");
  private readonly errors = new Grid(tables.errorHeads, "Errors");
  private readonly events = new Grid(tables.eventHeads, "Events");
  private readonly more = el("button", "chart-button more");
  private readonly secondPart: HTMLElement;
  private readonly stepPart: HTMLElement;
  private readonly eventPart: HTMLElement;
  private readonly hostPart: HTMLElement;
  private readonly storePart: HTMLElement;
  private readonly errorPart: HTMLElement;
  private allHosts = false;
  private found: Found | null | undefined; // the displayed verdict; undefined: a verdict of another run, or nothing yet
  private awaitedRun = "";

  constructor(root: HTMLElement, private readonly selection: Selection) {
    this.connectionState.setAttribute("role", "status");
    this.state.setAttribute("aria-live", "off");
    this.problem.setAttribute("role", "alert");
    this.verdict.setAttribute("aria-live", "polite");
    this.bar.setAttribute("role", "progressbar");
    this.bar.setAttribute("aria-label", "Progress of the run");
    this.report.target = "_blank";
    this.report.rel = "noopener";
    this.pick.addEventListener("change", () => this.selection.run(this.pick.value));
    this.more.type = "button";
    this.more.addEventListener("click", () => { this.allHosts = !this.allHosts; this.moreHosts(null); });
    const head = el("header", "", "", el("div", "head", "", el("div", "", "", this.name, this.about), el("div", "head-right", "", this.picker, this.connectionState)), this.state, this.bar, this.problem);
    const results = el("section", "says", "", el("div", "", "", this.basis, this.verdict, this.facts, this.search, this.thresholds, this.limits, this.checked, this.report), this.curve.root);
    results.setAttribute("aria-label", "Verdict");
    this.linkPart = part("Links, last minute", el("div", "links", "", this.matrix.root, el("div", "", "", this.linkGrid.root, this.linkReasons)));
    this.hostPart = part("Hosts", this.hosts.root, this.more);
    this.storePart = part("Data servers", this.stores.root);
    this.errorPart = part("Errors", this.errors.root);
    this.secondPart = part("Seconds", this.time.root);
    this.stepPart = part("Steps", this.steps.root, this.loadPart);
    this.eventPart = part("Events", this.events.root);
    root.replaceChildren(head, el("main", "", "", this.cards, this.linkPart, results, this.secondPart, this.stepPart, this.errorPart, this.storePart, this.hostPart, this.eventPart));
  }

  /** connection shows the state of the connection. */
  connection(text: string, good: boolean): void {
    write(this.connectionState, good ? "● " + text : "○ " + text);
    this.connectionState.classList.toggle("lost", !good);
  }

  /** runs updates the list of runs. */
  runs(all: Entry[], shown: string, chosen: string): void {
    this.awaitedRun = all.find((e) => e.key === shown)?.name ?? "";
    this.picker.hidden = all.length < 2;
    const newest = el("option", "", "newest run" + (chosen === "" ? ": " + (all.find((e) => e.key === shown)?.name ?? "") : ""));
    newest.value = "";
    const options = all.map((e) => {
      const o = el("option", "", e.name);
      o.value = e.key;
      return o;
    });
    this.pick.replaceChildren(newest, ...options.reverse());
    this.pick.value = chosen;
  }

  /** reset discards zoom, hidden lines and the verdict before another run is shown. */
  reset(): void {
    for (const charts of [this.curve, this.load, this.time]) charts.show([]);
    this.seconds.range = null;
    this.found = undefined;
  }

  /** title sets the title of the page, also while its tab is in the background. */
  title(d: RunData): void {
    if (d.now) document.title = (d.about ? d.about.name + " · " : "") + short(d.now) + " · weir";
  }

  /** show draws the data of a run. */
  show(d: RunData, run: string): void {
    const now = d.now;
    if (!now) return;
    this.title(d);
    write(this.name, d.about?.name ?? "weir");
    write(this.about, d.about ? [d.about.target, d.about.work, d.about.dir].join(" · ") : this.awaitedRun);
    this.progress(now, d);
    this.verdicts(d, now);
    this.report.hidden = !now.report;
    this.report.href = "/report.html" + (run ? "?run=" + encodeURIComponent(run) : "");
    this.figuresNow(d, now);
    const f = figures.frame(d);
    this.linkPart.hidden = d.links.length === 0;
    this.matrix.show(d.links, now.time, isOver(now));
    this.linkGrid.show(links.linkRows(d.links));
    write(this.linkReasons, "Controller: " + links.reasonsNow(d.links) + ".");
    const all = d.links.length > 0 ? [figures.challenge, figures.copies, figures.latency, figures.errors, figures.cpu, figures.disks, figures.network] : [figures.throughput, figures.jobs, figures.outcomes, figures.operations, figures.rates, figures.clients, figures.latency, figures.errors, figures.cpu, figures.disks, figures.network, figures.stores];
    this.time.show(all.map((m) => m(f)));
    this.secondPart.hidden = d.rows.at.length === 0;
    this.stepPart.hidden = d.steps.size === 0 || d.links.length > 0;
    this.steps.show(tables.steps(d));
    this.eventPart.hidden = d.events.length === 0;
    this.events.show(tables.events(d, maxEvents));
    this.errorPart.hidden = d.errors.size === 0;
    this.errors.show(tables.errors(d));
    this.storePart.hidden = d.storeList.length < 2;
    this.stores.show(tables.stores(d));
    this.moreHosts(d);
  }

  private shownHosts: RunData | null = null;

  /** moreHosts shows the busiest hosts, or all hosts. */
  private moreHosts(d: RunData | null): void {
    d = d ?? this.shownHosts;
    if (!d) return;
    this.shownHosts = d;
    this.hostPart.hidden = d.hostList.length === 0;
    this.more.hidden = d.hostList.length <= fewHosts;
    write(this.more, this.allHosts ? `Only the ${fewHosts} busiest hosts` : d.hostList.length < d.hostCount ? `The ${d.hostList.length} busiest of ${d.hostCount} hosts` : `All ${d.hostCount} hosts`);
    const list = this.allHosts ? d.hostList : d.hostList.slice(0, fewHosts);
    this.hosts.show(tables.hosts(list, new Set(d.hosts.keys()), (name, drawn) => this.selection.host(name, drawn)));
  }

  private progress(now: Now, d: RunData): void {
    write(this.state, statusText(now, d));
    write(this.problem, now.problem ?? "");
    this.problem.hidden = !now.problem;
    const share = Math.round(100 * now.share);
    this.bar.hidden = now.state === "waiting" || now.state === "preparing";
    (this.bar.firstElementChild as HTMLElement).style.width = share + "%";
    this.bar.setAttribute("aria-valuenow", String(share));
    this.bar.setAttribute("aria-valuetext", statusText(now, d));
    this.bar.classList.toggle("over", isOver(now));
  }

  /** verdicts updates the verdict once for each analysis, and the text about its age each time. */
  private verdicts(d: RunData, now: Now): void {
    const f = d.found;
    const over = isOver(now);
    write(this.basis, !f ? (over ? "The result is being calculated." : "No verdict yet.") : f.final ? "The result:" : `Based on the first ${seconds(f.until)}; ${over ? "the result follows." : "the run continues and the result may change."}`);
    if (f === this.found) return;
    this.found = f;
    write(this.stamp, f && !f.problem ? f.status : "");
    this.stamp.className = "stamp " + (f?.status ?? "");
    this.stamp.hidden = !f || !!f.problem;
    write(this.sentence, !f ? "" : f.problem ? "The run cannot be analyzed: " + f.problem : f.headline);
    this.facts.replaceChildren(...(f?.problem ? [] : f?.facts ?? []).map((text) => el("li", "", text)));
    write(this.search, f?.search ? "Search: " + f.search : "");
    list(this.thresholds, (f?.thresholds ?? []).map((t) => [t.met ? "ok" : "fail", (t.met ? "met" : "not met") + (f?.final ? "" : " so far"), t.threshold + ": " + t.detail]));
    this.limits.replaceChildren(...(f?.bottleneck ?? []).map((b) => {
      const from = `from ${count(b.from)} ${b.from === 1 ? "client" : "clients"} on`;
      const head = el("summary", "", b.resource === "none" ? "No limit found" : `Limit ${from}: ${b.resource}${b.host ? ", " + b.host : ""}`);
      return el("details", "", "", head, el("p", "meta", (b.evidence ?? []).join(" ")));
    }));
    list(this.checks, [...(f?.checks ?? []).map((c): [string, string, string] => [c.status, c.status, c.name + ": " + c.detail]), ...(f?.notes ?? []).map((n): [string, string, string] => ["skipped", "not checked", n.check + ": " + n.text]), ...(f?.warnings ?? []).map((w): [string, string, string] => ["warn", "note", w])]);
    this.checked.hidden = !f?.checks?.length;
    const [first, ...rest] = f?.curve ?? [];
    this.curve.show([first ?? null]);
    this.load.show(rest);
    this.loadPart.hidden = rest.length === 0;
  }

  /** figuresNow shows the key figures of the newest second. */
  private figuresNow(d: RunData, now: Now): void {
    const side = (name: string): number | null => d.sides.col(name).at(-1) ?? d.sides.col(name).at(-2) ?? null;
    const known = (x: number | null, format: (x: number) => string): string => (x === null ? "–" : format(x));
    const failed = [...d.errors.values()].reduce((sum, e) => sum + e.count, 0);
    const cards: [string, string][] = [
      ["throughput", known(d.last("throughput"), bits)], ["operations", known(d.last("operations"), (x) => count(x) + "/s")],
      ["clients", known(d.last("clients"), (x) => count(Math.round(x)))], ["latency, median", known(d.last("p50"), seconds)], ["p99", known(d.last("p99"), seconds)],
      ["errors, all phases", count(failed)], ["server CPU", known(side("server"), percent)], ["clients' CPU", known(side("client"), percent)], ...jobFacts(d),
    ];
    if (d.links.length > 0) cards.splice(0, cards.length, ...links.linkFacts(d));
    while (this.cards.children.length > cards.length) this.cards.lastElementChild?.remove();
    this.cards.hidden = d.rows.at.length === 0;
    this.cards.classList.toggle("past", now.state !== "running");
    cards.forEach(([name, value], i) => {
      const card = this.cards.children[i] ?? this.cards.appendChild(el("div", "card", "", el("b"), el("span")));
      write(card.children[0]!, value);
      write(card.children[1]!, name);
    });
  }
}

/** part returns a section with a heading. */
function part(title: string, ...children: Node[]): HTMLElement {
  return el("section", "", "", el("h2", "", title), ...children);
}

/** list fills a list with items of a CSS class, a keyword and a text. */
function list(ul: HTMLElement, items: [string, string, string][]): void {
  ul.replaceChildren(...items.map(([kind, word, text]) => el("li", "", "", el("b", kind, word), document.createTextNode(" " + text))));
  ul.hidden = items.length === 0;
}

/** isOver reports whether the run has ended, by itself or not. */
const isOver = (now: Now): boolean => now.state === "ended" || now.state === "broken";

/** statusText describes the progress of the run and its workers. */
function statusText(now: Now, d: RunData): string {
  return progress(now, d) + (now.workers ? " " + now.workers + "." : "");
}

function progress(now: Now, d: RunData): string {
  switch (now.state) {
    case "waiting": return "Waiting for the run to begin.";
    case "preparing": return "Preparing the run; no load yet.";
    case "ended": return "The run is over" + (now.last ? ": " + now.last : "") + ".";
    case "broken": return "The run was aborted before its end.";
    case "running": break;
  }
  if (d.links.length > 0) return `Stage ${d.stage}` + (now.of > 0 ? ` of ${now.of}` : "") + `; about ${seconds(Math.round(now.left))} left.`;
  const step = now.of > 0 ? `Step ${now.place} of ${now.of}` : `Step ${now.step}`;
  const left = (now.at_most ? "at most " : "about ") + seconds(Math.round(now.left)) + " left";
  return `${step}: ${now.phase} with ${count(Math.round(now.clients))} ${Math.round(now.clients) === 1 ? "client" : "clients"}; ${left}` + (now.seconds > 1 ? `; each point is ${now.seconds} s` : "") + ".";
}

function short(now: Now): string {
  return now.state === "running" ? Math.round(100 * now.share) + "%" : now.state === "ended" ? "over" : now.state === "broken" ? "aborted" : now.state;
}

/** jobFacts returns the additional key figures of runs with jobs. */
function jobFacts(d: RunData): [string, string][] {
  if (!d.columnsOf("job").includes("job running")) return [];
  const [running, computing] = [d.last("job running"), d.last("job computing")];
  return [
    ["jobs running", count(Math.round(running ?? 0))],
    ["CPU efficiency", running ? percent((computing ?? 0) / running) : "–"],
    ["events", count(d.last("job events") ?? 0) + "/s"],
  ];
}
