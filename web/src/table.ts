// The numbers of a chart as a table, for accessibility and exact values, and as a
// file for a spreadsheet.
import { el } from "./dom";
import type { Axis, Figure } from "./figure";
import { tick } from "./format";
import { aligned, places } from "./lines";

/** maxRows is the number of rows that the table shows; the CSV file contains all rows. */
const maxRows = 300;

/** Table holds numbers in the units of its head. */
export interface Table {
  head: string[];
  rows: (number | null)[][];
}

/** labelWithUnit returns an axis' label with its unit; durations are in seconds. */
function labelWithUnit(a: Axis): string {
  if (a.duration) return a.label + " (s)";
  const unitInLabel = a.unit === "" || a.label.includes(a.unit) || a.label.startsWith("time since");
  return unitInLabel ? a.label : a.label + " (" + a.unit + ")";
}

/** tableOf returns the data of a figure as columns of a table. */
export function tableOf(f: Figure): Table {
  const [x, y] = [labelWithUnit(f.x), f.y.duration ? labelWithUnit(f.y) : f.y.label];
  const at = (v: number): number => v * (f.x.duration ? 1 : f.x.factor);
  const is = (v: number | null | undefined): number | null => (v === null || v === undefined ? null : v * (f.y.duration ? 1 : f.y.factor));
  if (f.heat) {
    const h = f.heat;
    return {
      head: [x + " from", "to", y + " from", "to", h.what],
      rows: h.rows.flatMap((row, i) => row.flatMap((n, k) => (n > 0 ? [[at(h.x[i]!), at(h.x[i + 1]!), is(h.y[k])!, is(h.y[k + 1])!, n]] : []))),
    };
  }
  if (f.columns?.length) return { head: [x + " from", "to", y], rows: f.columns.map((c) => [at(c.from), at(c.to), is(c.y)]) };
  const lines = (f.lines ?? []).filter((l) => l.x.length > 0);
  const all = places(lines);
  const columns = lines.flatMap((l) => {
    const name = l.name + (y ? " (" + y + ")" : "");
    const own = [{ name, of: aligned(l, all) }];
    if (l.low && l.high) {
      own.push({ name: l.name + " 95% low", of: aligned({ ...l, y: l.low }, all) }, { name: l.name + " 95% high", of: aligned({ ...l, y: l.high }, all) });
    }
    return own;
  });
  return { head: [x, ...columns.map((c) => c.name)], rows: Array.from(all, (v, i) => [at(v), ...columns.map((c) => is(c.of[i]))]) };
}

/** csv formats a table as CSV. A name that a spreadsheet would interpret as a formula gets a leading '. */
export function csv(t: Table): string {
  const cell = (v: string): string => (/[",\n\r]/.test(v) ? '"' + v.replaceAll('"', '""') + '"' : v);
  const safe = (v: string): string => cell(/^[=+\-@\t\r]/.test(v) ? "'" + v : v);
  const number = (v: number | null): string => (v === null ? "" : String(Number(v.toPrecision(7))));
  return [t.head.map(safe).join(","), ...t.rows.map((r) => r.map(number).join(","))].join("\n") + "\n";
}

/** element returns the table as an HTML element. */
function element(f: Figure, t: Table): HTMLElement {
  const row = (kind: "th" | "td", cells: string[]): HTMLTableRowElement => el("tr", "", "", ...cells.map((text) => {
    const c = el(kind, "", text);
    if (kind === "th") c.scope = "col";
    return c;
  }));
  const rows = t.rows.slice(0, maxRows).map((r) => row("td", r.map((v) => (v === null ? "-" : tick(v)))));
  const box = el("div", "scroll chart-table", "", el("table", "", "", el("thead", "", "", row("th", t.head)), el("tbody", "", "", ...rows)));
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", f.title + ", as a table");
  if (t.rows.length > maxRows) box.append(el("p", "note", `The first ${maxRows} of ${t.rows.length} rows are shown; the CSV file contains all rows.`));
  return box;
}

/** buttons returns the buttons that open the table and save the CSV file. */
export function buttons(f: Figure): HTMLElement {
  const box = el("div", "chart-data");
  const button = (text: string, title: string): HTMLButtonElement => {
    const b = el("button", "chart-button", text);
    b.type = "button";
    b.title = title;
    b.setAttribute("aria-label", title);
    return b;
  };
  const data = button("Data", "Data: the numbers of " + f.title + " as a table");
  data.setAttribute("aria-expanded", "false");
  const save = button("CSV", "CSV: save the numbers of " + f.title + " as a file");
  let shown: HTMLElement | null = null;
  data.addEventListener("click", () => {
    if (shown) {
      shown.remove();
      shown = null;
    } else box.append((shown = element(f, tableOf(f))));
    data.setAttribute("aria-expanded", String(shown !== null));
  });
  save.addEventListener("click", () => {
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([csv(tableOf(f))], { type: "text/csv" }));
    a.download = f.id.replace(/[^A-Za-z0-9_-]/g, "_") + ".csv";
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 60_000);
  });
  box.append(data, save);
  return box;
}

