// The contents of the tables of the page.
import { bits, bytes, count, percent, seconds } from "./format";
import type { RunData, HostNow, Numbers } from "./live_data";
import { hostColumns } from "./live_data";
import type { Cell } from "./live_dom";
import { storeName } from "./live_figures";

const cell = (text: string): Cell => ({ text });
const word = (text: string): Cell => ({ text, left: true });
const known = (x: number | null | undefined, format: (x: number) => string): string => (x === null || x === undefined ? "–" : format(x));

export const stepHeads = ["step", "load", "throughput", "95% interval", "operations", "p50", "p90", "p99", "errors", "server CPU", "clients' CPU", "held", "<note"];

/** steps returns the rows of the started steps. Results of the analysis follow a little later. */
export function steps(d: RunData): Cell[][] {
  const found = new Map((d.found?.steps ?? []).map((s) => [s.step, s]));
  const payload = [...d.steps.values()].some((s) => s.moved > 0);
  return [...d.steps.values()].map((s) => {
    const f = found.get(s.step);
    const per = (n: number): number => (s.held > 0 ? n / s.held : 0);
    const show = payload ? bits : (x: number): string => count(x) + "/s";
    const notes = [f?.best ? (d.found?.final ? "best" : "best so far") : "", f && f.steady === false ? "not steady" : "", s.broken ? "aborted, repeated" : ""].filter((t) => t !== "");
    const now = s.step === d.now?.step && d.now.state === "running";
    if (now) notes.unshift("now");
    const failing = now && s.failing ? `, ${percent(s.failing)} in the last second` : "";
    return [
      cell(String(s.step)), cell(s.rate ? count(s.rate) + "/s" : count(s.clients)), cell(s.held > 0 ? bits(per(s.moved)) : "–"),
      cell(f?.low != null && f.high != null ? show(f.low) + " to " + show(f.high) : "–"),
      cell(s.held > 0 ? count(per(s.done)) + "/s" : "–"), cell(known(s.p50, seconds)), cell(known(s.p90, seconds)), cell(known(s.p99, seconds)),
      cell(count(s.errors) + failing), cell(known(f?.server, percent)), cell(known(f?.client, percent)),
      cell(seconds(s.held) + (s.planned > 0 ? " of " + seconds(s.planned) : "")), word(notes.join(", ")),
    ].map((c) => ({ ...c, strong: !!f?.best }));
  });
}

export const hostHeads = ["<host", "<role", "cores", "CPU", "server processes", "client processes", "I/O wait", "disk busy", "disk read", "disk written", "received", "sent", "<drawn"];

/** hosts returns the rows of the monitored hosts, busiest first; draw is called when the user selects or deselects a host for the plots. */
export function hosts(all: HostNow[], drawn: ReadonlySet<string>, draw: (name: string, drawn: boolean) => void): Cell[][] {
  const share = ["cpu", "server", "client", "iowait", "disk_busy"];
  const rate = ["read", "write", "received", "sent"];
  const at = (now: Numbers, column: string): number | null => now[hostColumns.indexOf(column as (typeof hostColumns)[number])] ?? null;
  return all.map((h) => [
    word(h.name), word(h.role), cell(h.cores > 0 ? String(h.cores) : "–"),
    ...share.map((c) => cell(known(at(h.now, c), percent))), ...rate.map((c) => cell(known(at(h.now, c), (x) => bytes(x) + "/s"))),
    { ...word(""), box: { label: "draw " + h.name, checked: drawn.has(h.name), onChange: (checked) => draw(h.name, checked) } },
  ]);
}

export const storeHeads = ["<data server", "now", "share of all", "moved", "operations"];

/** stores returns the rows of the data servers. */
export function stores(d: RunData): Cell[][] {
  return d.storeList.map((s) => [word(storeName(s.name)), cell(bits(s.now)), cell(percent(s.of)), cell(bytes(s.moved)), cell(count(s.done))]);
}

export const errorHeads = ["<class", "operations", "<newest", "<message"];

/** errors returns the rows of the error classes with their newest texts. */
export function errors(d: RunData): Cell[][] {
  const all = [...d.errors.values()].sort((a, b) => b.count - a.count);
  return all.flatMap((e) => {
    const texts = e.texts.length > 0 ? e.texts : [{ time: "", text: "(no text)" }];
    return texts.map((t, i) => [word(i === 0 ? e.class : ""), cell(i === 0 ? count(e.count) : ""), word(clock(t.time)), word(t.text)]);
  });
}

export const eventHeads = ["<time", "<event", "<details"];

/** events returns the rows of the newest events, newest first. */
export function events(d: RunData, most: number): Cell[][] {
  return d.events.slice(-most).reverse().map((e) => [word(clock(e.time)), word(e.event), word(e.text)]);
}

/** clock formats the local time of day. */
export function clock(time: string): string {
  const t = new Date(time);
  return time === "" || Number.isNaN(t.getTime()) ? "" : t.toLocaleTimeString([], { hour12: false });
}
