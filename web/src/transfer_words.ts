// Quantities and states of transfers as texts, and small elements with them.
// Names come from elsewhere: they are set as text only.
import { el, write } from "./dom";
import { bits, bytes, count, seconds } from "./format";
import { now, type Counts, type Request, type Site } from "./transfer_api";

/** whole writes a whole number with groups of three digits. */
export const whole = (n: number): string => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");

/** files: "1 file", "12,345 files". */
export const files = (n: number): string => whole(n) + (n === 1 ? " file" : " files");

/** ended reports whether nothing more will happen to a request, as transfer.Status has it. */
export const ended = (status: string): boolean => !["awaiting approval", "resolving", "running"].includes(status);

/** moment is when something was, in milliseconds; 0: never. */
export function moment(text: string | undefined): number {
  const at = text ? Date.parse(text) : 0;
  return at > 0 ? at : 0; // Go's zero time is in the year 1
}

/** round is a span in words without more digits than anybody wants. */
function round(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return s + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  if (s < 48 * 3600) return Math.round(s / 3600) + " h";
  return Math.round(s / 86400) + " days";
}

/** ago: "12 s ago". */
export function ago(text: string | undefined): string {
  const at = moment(text);
  return at ? round(now() - at) + " ago" : "never";
}

/** when writes the time of day, with the date if it is not today. */
export function when(text: string | undefined): string {
  const at = moment(text);
  if (!at) return "";
  const t = new Date(at);
  const day = t.toDateString() === new Date(now()).toDateString() ? "" : t.toLocaleDateString("sv-SE") + " ";
  return day + t.toLocaleTimeString("sv-SE");
}

/** span is from one time to another, or until now. */
export function span(from: string | undefined, to: string | undefined): string {
  const begin = moment(from);
  return begin ? seconds(Math.max(0, (moment(to) || now()) - begin) / 1000) : "";
}

export const arrived = (c: Counts): number => c.done + c.skipped;

/** share is how much of a request is there, 0 to 1. */
export function share(c: Counts): number {
  if (c.bytes > 0) return Math.min(1, c.done_bytes / c.bytes);
  return c.files > 0 ? arrived(c) / c.files : 0;
}

/** percent never says 100% of what is not all there. */
export const percent = (x: number): string => (x >= 1 ? "100%" : (Math.floor(x * 1000) / 10).toFixed(1) + "%");

/** left is how long a request will take at its rate, or "". */
export function left(r: Request): string {
  if (r.status !== "running" || !(r.rate_bytes_per_second > 0)) return "";
  const s = (r.count.bytes - r.count.done_bytes) / r.rate_bytes_per_second;
  return s > 0 ? "about " + round(s * 1000) + " left" : "";
}

/** progress says how far a request is. */
export function progress(r: Request): string {
  const c = r.count;
  if (c.files === 0) return r.status === "resolving" ? "its files are being written down" : "";
  return [arrived(c) === c.files ? "all " + files(c.files) : whole(arrived(c)) + " of " + files(c.files), c.done_bytes === c.bytes ? bytes(c.bytes) : bytes(c.done_bytes) + " of " + bytes(c.bytes)].join(", ");
}

export const rate = (bytesPerSecond: number): string => (bytesPerSecond > 0 ? bits(bytesPerSecond) : "");

export const free = (s: Site): string => (s.free_bytes < 0 ? "not known" : bytes(s.free_bytes));

/** The states of files as people say them, in the order of a bar. */
export const states: { state: string; label: string; field: keyof Counts; kind: string }[] = [
  { state: "done", label: "done", field: "done", kind: "s-done" },
  { state: "skipped", label: "already there", field: "skipped", kind: "s-skipped" },
  { state: "leased", label: "moving", field: "leased", kind: "s-leased" },
  { state: "queued", label: "waiting", field: "queued", kind: "s-queued" },
  { state: "no source", label: "no source", field: "no_source", kind: "s-none" },
  { state: "failed", label: "failed", field: "failed", kind: "s-failed" },
  { state: "cancelled", label: "cancelled", field: "cancelled", kind: "s-cancelled" },
];

export const stateOf = (state: string): { label: string; kind: string } => states.find((s) => s.state === state) ?? { label: state, kind: "s-queued" };

/** stamp writes a status as a small sign. */
export function stamp(place: HTMLElement, status: string): void {
  let s = place.querySelector<HTMLElement>(".status");
  if (!s) place.append((s = el("span", "status")));
  write(s, status);
  const kind = "status st-" + status.replace(/[^a-z]/g, "");
  if (s.className !== kind) s.className = kind;
}

/** bar draws the files of a request by state. */
export function bar(place: HTMLElement, c: Counts, named: string): void {
  let b = place.querySelector<HTMLElement>(".files-bar");
  if (!b) {
    place.prepend((b = el("div", "files-bar", "", ...states.map((s) => el("span", s.kind)))));
    b.setAttribute("role", "img");
  }
  const says = named + ": " + states.filter((s) => c[s.field] > 0).map((s) => whole(c[s.field]) + " " + s.label).join(", ");
  if (b.getAttribute("aria-label") !== says) b.setAttribute("aria-label", says);
  b.title = says;
  states.forEach((s, i) => {
    const part = b.children[i] as HTMLElement;
    const width = c.files > 0 ? (100 * c[s.field]) / c.files + "%" : "0";
    if (part.style.width !== width) part.style.width = width;
    part.hidden = c[s.field] === 0;
  });
}

/** sh writes a name as a shell takes it as one word; what would not be harmless there is left to be filled in. */
export function sh(name: string, other: string): string {
  if (name === "" || name.startsWith("-") || /[^\x21-\x7e ]/.test(name)) return other;
  return /^[\w./:@%+,=-]+$/.test(name) ? name : "'" + name.replaceAll("'", "'\\''") + "'";
}

/** command shows a line for a terminal, with a button that copies it. */
export function command(line: string): HTMLElement {
  const copy = el("button", "button", "Copy");
  copy.type = "button";
  copy.setAttribute("aria-label", "Copy: " + line);
  copy.addEventListener("click", () => {
    void navigator.clipboard?.writeText(line).then(() => {
      write(copy, "Copied");
      setTimeout(() => write(copy, "Copy"), 1500);
    }, () => undefined);
  });
  copy.hidden = !navigator.clipboard; // browsers have it on trusted connections only
  return el("div", "command", "", el("code", "", line), copy);
}

/** empty says that there is nothing, and what to do next. */
export function empty(what: string, ...next: (string | Node)[]): HTMLElement {
  return el("div", "empty", "", el("p", "strong", what), ...next.map((n) => (typeof n === "string" ? el("p", "", n) : n)));
}

export { bits, bytes, count, seconds };
