// The links of a data challenge on the live page: the matrix of the last minute, the
// worst links and the reasons of the controller.
import { bits, count, percent } from "./format";
import type { Link, RunData } from "./live_data";
import type { Cell } from "./live_dom";
import { el, write } from "./dom";

const maxSites = 30; // rows or columns of the matrix
const maxLinks = 20; // rows of the table
const chooseEvery = 30; // seconds after which other sites may be shown
const levels = [0.95, 0.8, 0.6, 0.4, 0.2]; // as in the report

/** missing returns the bytes per second by which a link was below its target in the last minute. */
const missing = (l: Link): number => Math.max(0, l.target - l.achieved);

/** worst returns the links, those that missed most in the last minute first. */
export function worst(links: Link[]): Link[] {
  return [...links].sort((a, b) => missing(b) - missing(a));
}

/** level returns the level of a share of the target, from 1 for all to 6 for nothing. */
export function level(share: number): number {
  const i = levels.findIndex((least) => share >= least - 0.005);
  return (i < 0 ? levels.length : i) + 1;
}

/** sitesOf returns the rows and the columns of the matrix: all sites by name, or those of the worst links. */
export function sitesOf(links: Link[]): { sources: string[]; dests: string[] } {
  const choose = (of: (l: Link) => string): string[] => {
    const all = [...new Set(links.map(of))];
    if (all.length <= maxSites) return all.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    const misses = new Map<string, number>();
    for (const l of links) misses.set(of(l), (misses.get(of(l)) ?? 0) + missing(l));
    const chosen = [...new Set(worst(links).map(of))].slice(0, maxSites);
    return chosen.sort((a, b) => misses.get(b)! - misses.get(a)!);
  };
  return { sources: choose((l) => l.source), dests: choose((l) => l.dest) };
}

/** note describes a link while the user points at it. */
const note = (l: Link): string => `${l.source} to ${l.dest}: ${bits(l.achieved)} of ${bits(l.target)}, ${count(Math.round(l.flight))} in flight; ${reasonText(l.reason)}`;

/** Matrix is the table of the achieved shares of the targets; its cells are updated in place. */
export class Matrix {
  readonly root = el("div", "scroll");
  private readonly table = el("table", "matrix");
  private readonly caption = el("p", "meta");
  private cells = new Map<string, HTMLElement>();
  private key = "";
  private chosenAt = -Infinity;
  private sites: { sources: string[]; dests: string[] } = { sources: [], dests: [] };

  constructor() {
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "region");
    this.root.setAttribute("aria-label", "Matrix of links");
    this.root.append(this.table, this.caption);
  }

  /** show draws the links; now is the time of the run in seconds, and over reports whether it has ended. */
  show(links: Link[], now: number, over: boolean): void {
    if (links.length === 0) return;
    if (over || now < this.chosenAt || now - this.chosenAt >= chooseEvery || this.sites.sources.length < maxSites) {
      this.sites = sitesOf(links);
      this.chosenAt = now;
    }
    const key = JSON.stringify(this.sites);
    if (key !== this.key) this.build();
    this.key = key;
    let shown = 0;
    for (const l of links) {
      const td = this.cells.get(l.source + "\n" + l.dest);
      if (!td) continue;
      shown++;
      const share = l.target > 0 ? l.achieved / l.target : null;
      write(td, share === null ? "–" : (100 * share).toFixed(0));
      const name = share === null ? "" : "level" + level(share);
      if (td.className !== name) td.className = name;
      td.title = note(l);
    }
    write(this.caption, "Achieved share of the target in the last minute, in percent; rows are sources, columns are destinations." +
      (shown < links.length ? ` Shown are ${shown} of ${links.length} links, those of the sites that miss the most.` : ""));
  }

  /** build makes the table for the chosen sites. */
  private build(): void {
    this.cells.clear();
    const head = (text: string, scope: "row" | "col"): HTMLElement => {
      const th = el("th", "", text);
      th.scope = scope;
      return th;
    };
    const { sources, dests } = this.sites;
    const wide = dests.some((d) => d.length > 5) || dests.length > 20;
    this.table.classList.toggle("turned", wide);
    const top = el("tr", "", "", head("from / to", "col"), ...dests.map((d) => {
      const th = head("", "col");
      th.append(el("span", "", d));
      return th;
    }));
    const rows = sources.map((s) => el("tr", "", "", head(s, "row"), ...dests.map((d) => {
      const td = el("td");
      this.cells.set(s + "\n" + d, td);
      return td;
    })));
    this.table.replaceChildren(el("caption", "unseen", "Achieved share of the target of each link"), el("thead", "", "", top), el("tbody", "", "", ...rows));
  }
}

const cell = (text: string): Cell => ({ text });
const word = (text: string): Cell => ({ text, left: true });

export const linkHeads = ["<link", "target", "achieved", "%", "in flight", "waiting", "done", "failed", "<controller"];

/** linkRows returns the rows of the worst links of the last minute. */
export function linkRows(links: Link[]): Cell[][] {
  return worst(links).slice(0, maxLinks).map((l) => [
    word(l.source + " to " + l.dest), cell(bits(l.target)), cell(bits(l.achieved)), cell(l.target > 0 ? percent(Number((l.achieved / l.target).toFixed(2))) : "–"),
    cell(l.flight.toFixed(1)), cell(l.queued.toFixed(1)), cell(count(l.done)), cell(count(l.failed)), word(reasonText(l.reason)),
  ]);
}

/** reasonText describes a reason of the controller for not more copies. */
export function reasonText(reason: string): string {
  switch (reason) {
    case "paced": return "at target";
    case "raised": return "starting more copies";
    case "saturated": return "saturated";
    case "in_flight": return "limit of copies";
    case "ceiling": return "ceiling";
    case "failing": return "pause after failures";
    case "large_file": return "large file";
    case "queued": return "waiting at the service";
    case "idle": return "no target";
    case "stopped": return "ending";
  }
  return reason;
}

/** reasonsNow counts the links by the reason of the controller, the most frequent reason first. */
export function reasonsNow(links: Link[]): string {
  const counts = new Map<string, number>();
  for (const l of links) counts.set(l.reason, (counts.get(l.reason) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([r, n]) => `${n} ${n === 1 ? "link" : "links"}: ${reasonText(r)}`).join("; ");
}

/** linkFacts returns the key figures of a data challenge. */
export function linkFacts(d: RunData): [string, string][] {
  const sum = (of: (l: Link) => number): number => d.links.reduce((s, l) => s + of(l), 0);
  const [target, achieved] = [sum((l) => l.target), sum((l) => l.achieved)];
  const due = d.links.filter((l) => l.target > 0);
  return [
    ["of the target, last minute", target > 0 ? percent(Number((achieved / target).toFixed(3))) : "–"], ["achieved", bits(achieved)], ["target", bits(target)],
    ["links at 95% or more", `${due.filter((l) => level(l.achieved / l.target) === 1).length} of ${due.length}`],
    ["copies in flight", count(Math.round(sum((l) => l.flight)))], ["copies waiting", count(Math.round(sum((l) => l.queued)))],
    ["copies done", count(sum((l) => l.done))], ["copies failed", count(sum((l) => l.failed))],
  ];
}
