// Quantities and states of transfers as texts, and small elements for them.
// Names are external input: they are set as text only.
import { el, write } from "./dom";
import { bits, bytes, count, seconds } from "./format";
import { now, type Counts, type Request, type Site } from "./transfer_api";

/** whole formats an integer with groups of three digits. */
export const whole = (n: number): string => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");

/** files formats a number of files: "1 file", "12,345 files". */
export const files = (n: number): string => whole(n) + (n === 1 ? " file" : " files");

/** ended reports whether a status is final, like transfer.Status.Ended. */
export const ended = (status: string): boolean => !["awaiting approval", "resolving", "running"].includes(status);

/** timestamp returns a time in milliseconds, 0 if it is missing or zero. */
export function timestamp(text: string | undefined): number {
  const at = text ? Date.parse(text) : 0;
  return at > 0 ? at : 0; // Go's zero time is in the year 1
}

/** roundDuration formats a duration with one unit and without decimals. */
function roundDuration(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return s + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  if (s < 48 * 3600) return Math.round(s / 3600) + " h";
  return Math.round(s / 86400) + " days";
}

/** ago formats the time since a moment: "12 s ago". */
export function ago(text: string | undefined): string {
  const at = timestamp(text);
  return at ? roundDuration(now() - at) + " ago" : "never";
}

/** when formats the time of day, with the date if it is not today. */
export function when(text: string | undefined): string {
  const at = timestamp(text);
  if (!at) return "";
  const t = new Date(at);
  const day = t.toDateString() === new Date(now()).toDateString() ? "" : t.toLocaleDateString("sv-SE") + " ";
  return day + t.toLocaleTimeString("sv-SE");
}

/** elapsed formats the time between two moments; to defaults to now. */
export function elapsed(from: string | undefined, to: string | undefined): string {
  const begin = timestamp(from);
  return begin ? seconds(Math.max(0, (timestamp(to) || now()) - begin) / 1000) : "";
}

/** arrived returns the number of files at the destination. */
export const arrived = (c: Counts): number => c.done + c.skipped;

/** completedShare returns the completed share of a request, 0 to 1. */
export function completedShare(c: Counts): number {
  if (c.bytes > 0) return Math.min(1, c.done_bytes / c.bytes);
  return c.files > 0 ? arrived(c) / c.files : 0;
}

/** percent rounds down: only a complete request has 100%. */
export const percent = (x: number): string => (x >= 1 ? "100%" : (Math.floor(x * 1000) / 10).toFixed(1) + "%");

/** timeLeft formats the remaining time of a request at its current rate; it is "" if unknown. */
export function timeLeft(r: Request): string {
  if (r.status !== "running" || !(r.rate_bytes_per_second > 0)) return "";
  const s = (r.count.bytes - r.count.done_bytes) / r.rate_bytes_per_second;
  return s > 0 ? "about " + roundDuration(s * 1000) + " left" : "";
}

/** size formats the number of files and bytes of a request: those submitted until the coordinator has resolved all of them. */
export function size(r: Request): string {
  const of = r.count.files === 0 || r.status === "resolving" ? r.asked : r.count;
  return files(of.files) + ", " + bytes(of.bytes);
}

/** progress formats the number of arrived files and bytes of a request. */
export function progress(r: Request): string {
  const c = r.count;
  if (c.files === 0) return r.status === "resolving" ? "resolving " + size(r) : size(r);
  return [arrived(c) === c.files ? "all " + files(c.files) : whole(arrived(c)) + " of " + files(c.files), c.done_bytes === c.bytes ? bytes(c.bytes) : bytes(c.done_bytes) + " of " + bytes(c.bytes)].join(", ");
}

export const rate = (bytesPerSecond: number): string => (bytesPerSecond > 0 ? bits(bytesPerSecond) : "");

export const freeSpace = (s: Site): string => (s.free_bytes < 0 ? "unknown" : bytes(s.free_bytes));

/** states lists the states of files with their labels, in the order of the progress bar. */
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

/** showStatus writes a status as a small badge. */
export function showStatus(place: HTMLElement, status: string): void {
  let s = place.querySelector<HTMLElement>(".status");
  if (!s) place.append((s = el("span", "status")));
  write(s, status);
  const kind = "status st-" + status.replace(/[^a-z]/g, "");
  if (s.className !== kind) s.className = kind;
}

/** bar draws the number of files in each state as a stacked bar. */
export function bar(place: HTMLElement, c: Counts, named: string): void {
  let b = place.querySelector<HTMLElement>(".files-bar");
  if (!b) {
    place.prepend((b = el("div", "files-bar", "", ...states.map((s) => el("span", s.kind)))));
    b.setAttribute("role", "img");
  }
  const label = named + ": " + states.filter((s) => c[s.field] > 0).map((s) => whole(c[s.field]) + " " + s.label).join(", ");
  if (b.getAttribute("aria-label") !== label) b.setAttribute("aria-label", label);
  b.title = label;
  states.forEach((s, i) => {
    const part = b.children[i] as HTMLElement;
    const width = c.files > 0 ? (100 * c[s.field]) / c.files + "%" : "0";
    if (part.style.width !== width) part.style.width = width;
    part.hidden = c[s.field] === 0;
  });
}

/** shellQuote quotes a name as one word of a shell. It returns the placeholder other if the name is empty or may be unsafe in a shell. */
export function shellQuote(name: string, other: string): string {
  if (name === "" || name.startsWith("-") || /[^\x21-\x7e ]/.test(name)) return other;
  return /^[\w./:@%+,=-]+$/.test(name) ? name : "'" + name.replaceAll("'", "'\\''") + "'";
}

/** command shows a command line, with a button that copies it. */
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
  copy.hidden = !navigator.clipboard; // browsers provide it on trusted connections only
  return el("div", "command", "", el("code", "", line), copy);
}

/** emptyState shows the text of an empty list, and the next steps. */
export function emptyState(text: string, ...next: (string | Node)[]): HTMLElement {
  return el("div", "empty", "", el("p", "strong", text), ...next.map((n) => (typeof n === "string" ? el("p", "", n) : n)));
}

export { bits, bytes, count, seconds };
