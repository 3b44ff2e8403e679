// The view of one request: how far it is, which of its files are where, and why.
import { el, write } from "./dom";
import { Charts } from "./live_charts";
import { explain, items, manifest, now, request, type Happening, type Item, type Request } from "./transfer_api";
import { deedsOf } from "./transfer_deeds";
import type { Desk, View } from "./transfer_desk";
import { Poll, status } from "./transfer_poll";
import { openFile } from "./transfer_file";
import { chart } from "./transfer_pulse";
import { deeds, Rows, text, type Column } from "./transfer_rows";
import { ago, bar, bits, bytes, command, ended, files, left, moment, percent, progress, share, span, stamp, stateOf, states, when, whole } from "./transfer_words";

const reasons = 8; // that are shown
const page = 100; // files that are shown at a time: there may be a million

/** OneRequest is the view. */
export class OneRequest implements View {
  readonly root = el("div");
  readonly title: string;
  private readonly problem = el("p", "fail");
  private readonly head = el("h2", "first name");
  private readonly sign = el("span");
  private readonly facts = el("p", "meta name");
  private readonly said = el("p", "name");
  private readonly done = el("div", "big-progress");
  private readonly words = el("p", "state");
  private readonly buttons = el("div", "buttons");
  private readonly file = el("a", "button", "Manifest");
  private readonly why = el("ul", "reasons");
  private readonly whyPart = el("section", "", "", el("h2", "", "What its files do now"), this.why);
  private readonly chips = el("div", "chips");
  private readonly rows: Rows<Item>;
  private readonly before = el("button", "button", "Previous");
  private readonly after = el("button", "button", "Next");
  private readonly place = el("span", "meta");
  private readonly none = el("p", "meta");
  private readonly charts = new Charts("request-");
  private r: Request | null = null;
  private state: string | null = null; // of the files that are shown; null: not chosen yet
  private starts: number[] = [0]; // the numbers after which the pages begin
  private readonly at: number[] = [];
  private readonly rates: number[] = [];
  private begin = 0;
  private reasonsAt = 0;
  private readonly poll: Poll;

  constructor(private readonly desk: Desk, private readonly id: number, q: URLSearchParams) {
    this.title = "Request " + id;
    this.state = q.get("state");
    this.rows = new Rows("Files", (i) => String(i.id), this.columns());
    this.problem.setAttribute("role", "alert");
    this.file.href = manifest(id);
    this.file.download = "request-" + id + "-manifest.json";
    this.file.title = "Every file with its state, size and checksum, as JSON";
    this.chips.setAttribute("role", "group");
    this.chips.setAttribute("aria-label", "Which files are shown");
    for (const b of [this.before, this.after]) b.type = "button";
    this.before.addEventListener("click", () => this.turn(-1));
    this.after.addEventListener("click", () => this.turn(1));
    this.root.append(this.problem, el("div", "title-row", "", this.head, this.sign), this.facts, this.said, this.done, this.words,
      el("div", "buttons", "", this.buttons, this.file), this.whyPart, this.charts.root, el("section", "", "", el("h2", "", "Files"), this.chips, this.rows.root, this.none,
        el("div", "buttons pages", "", this.before, this.after, this.place)), el("div", "same", "", el("p", "meta", "The same in a terminal:"), command("weir transfer show " + id)));
    this.whyPart.hidden = true;
    this.poll = new Poll(() => this.ask());
  }

  happened(e: Happening): void {
    if (e.request === this.id) {
      this.reasonsAt = 0;
      this.poll.kick();
    }
  }

  beat(): void {
    // it asks by itself
  }

  end(): void {
    this.poll.end();
  }

  private turn(by: number): void {
    if (by < 0) this.starts.pop();
    else this.starts.push(this.last);
    this.poll.kick();
  }

  private choose(state: string): void {
    this.state = state;
    this.starts = [0];
    history.replaceState(null, "", "#/requests/" + this.id + (state ? "?state=" + encodeURIComponent(state) : ""));
    this.poll.kick();
    this.tellChips();
  }

  private async ask(): Promise<number> {
    try {
      this.r = await request(this.id);
      this.state ??= this.r.count.failed > 0 ? "failed" : "";
      this.tell(this.r);
      const [list] = await Promise.all([items(this.id, this.state, this.starts.at(-1)!, page + 1), this.askWhy(this.r)]);
      this.tellFiles(list); // last: what stands above the files does not push them away under the mouse
      write(this.problem, "");
    } catch (err) {
      write(this.problem, status(err) === 404 ? "There is no request " + this.id + "." : this.desk.lost(err));
      return 5000;
    }
    return ended(this.r.status) ? 30_000 : this.r.status === "awaiting approval" ? 10_000 : 1500;
  }

  private async askWhy(r: Request): Promise<void> {
    if (ended(r.status)) {
      this.whyPart.hidden = true;
      return;
    }
    if (Date.now() - this.reasonsAt < 5000) return;
    this.reasonsAt = Date.now();
    const all = (await explain(this.id, "")).reasons ?? [];
    const said = all.slice(0, reasons).map((x) => el("li", "name", "", el("b", "", x.files === 0 ? "" : (x.files === 1 && x.file ? x.file : files(x.files)) + ": "), document.createTextNode(x.text)));
    if (all.length > reasons) said.push(el("li", "meta", "and " + whole(all.length - reasons) + " more; press a file below to see its own."));
    this.why.replaceChildren(...said);
    this.whyPart.hidden = all.length === 0;
  }

  private tell(r: Request): void {
    const c = r.count;
    document.title = r.id + " " + (ended(r.status) ? r.status : percent(share(c))) + " · weir";
    write(this.head, r.id + ": " + r.dataset + (r.block ? ", block " + r.block : "") + " → " + r.to);
    stamp(this.sign, r.status);
    const facts = ["asked for by " + r.by + " " + ago(r.made), r.decided_by ? "decided by " + r.decided_by : "", r.from?.length ? "only from " + r.from.join(", ") : "", r.mode ? "by " + r.mode : "", r.priority ? "priority " + r.priority : "",
      r.share && r.share !== "default" ? "share " + r.share : "", r.files?.length ? "only " + files(r.files.length) : "", r.unchecked ? "files without a checksum are accepted" : "", moment(r.expires) && !ended(r.status) ? "expires at " + when(r.expires) : "",
      r.ended ? "ended at " + when(r.ended) + (r.began ? " after " + span(r.began, r.ended) : "") : r.began ? "for " + span(r.began, "") : "", whole(c.attempts) + (c.attempts === 1 ? " attempt" : " attempts")];
    write(this.facts, facts.filter((f) => f).join(" · "));
    write(this.said, [r.comment ? "“" + r.comment + "”" : "", r.reason ?? ""].filter((t) => t).join(" · "));
    bar(this.done, c, "Files");
    write(this.words, c.files > 0 ? [percent(share(c)), progress(r), r.rate_bytes_per_second > 0 && !ended(r.status) ? bits(r.rate_bytes_per_second) : "", left(r)].filter((t) => t).join(" · ") : progress(r));
    deeds(this.buttons, deedsOf(this.desk, r, () => this.poll.kick()));
    this.file.hidden = c.files === 0;
    this.tellChips();
    this.tellRate(r);
  }

  private tellRate(r: Request): void {
    if (ended(r.status) && this.rates.length === 0) return;
    if (!ended(r.status) && r.began) {
      this.begin ||= now();
      this.at.push((now() - this.begin) / 1000);
      this.rates.push(r.rate_bytes_per_second);
      if (this.at.length > 2400) [this.at, this.rates].forEach((l) => l.shift());
    }
    const some = this.rates.some((v) => v > 0) && this.at.length > 2;
    this.charts.show([some ? chart("rate", "Rate of this request", [{ name: "rate", color: 0, x: this.at, y: this.rates }], this.at, "Bytes that arrive, as bits per second, while this page is open.") : null]);
  }

  private tellChips(): void {
    const r = this.r;
    if (!r) return;
    const all = [{ state: "", label: "all", n: r.count.files }, ...states.map((s) => ({ state: s.state, label: s.label, n: r.count[s.field] }))].filter((s) => s.n > 0 || s.state === "" || s.state === this.state);
    deeds(this.chips, all.map((s) => ({ label: s.label, title: "Files: " + s.label, done: () => this.choose(s.state) })));
    all.forEach((s, i) => {
      const b = this.chips.children[i] as HTMLElement;
      b.dataset["n"] = whole(s.n);
      b.className = "button chip " + (s.state ? stateOf(s.state).kind : "");
      b.setAttribute("aria-label", s.label + ": " + files(s.n));
      b.setAttribute("aria-pressed", String(s.state === (this.state ?? "")));
    });
  }

  private last = 0;

  private tellFiles(list: Item[]): void {
    const more = list.length > page;
    list = list.slice(0, page);
    this.last = list.at(-1)?.id ?? 0;
    this.rows.show(list);
    this.before.disabled = this.starts.length < 2;
    this.after.disabled = !more;
    this.before.parentElement!.hidden = this.before.disabled && !more;
    const from = (this.starts.length - 1) * page;
    write(this.place, list.length ? whole(from + 1) + " to " + whole(from + list.length) : "");
    write(this.none, list.length ? "" : this.r?.status === "awaiting approval" || this.r?.status === "resolving" ? "Its files are written down once it is approved." : "No file is in this state.");
  }

  private columns(): Column<Item>[] {
    return [
      { head: "file", kind: "l name long bare", fill: (td, i) => deeds(td, [{ label: i.name, title: i.name + ": its attempts, and why it stands where it stands", done: () => openFile(this.desk, this.id, i) }]) },
      { head: "state", kind: "l bare", fill: (td, i) => {
        const s = stateOf(i.state);
        write(td, s.label + (i.state === "leased" && i.stage && i.stage !== "moving" ? ", " + i.stage : ""));
        td.className = "l bare " + s.kind + "-text";
      } },
      text("size", (i) => bytes(i.size_bytes), "r"),
      text("moved", (i) => (i.state === "leased" && i.size_bytes > 0 ? percent((i.moved_bytes ?? 0) / i.size_bytes) : ""), "r"),
      text("from", (i) => i.source ?? "", "l wide name"),
      text("failed attempts", (i) => (i.tries > 0 ? String(i.tries) : ""), "r wide"),
      text("reason", (i) => reason(i), "l name reason bare"),
    ];
  }
}

/** reason says why a file stands where it stands, in short. */
export function reason(i: Item): string {
  const again = moment(i.not_before);
  const wait = i.state === "queued" && again > now() ? "again in " + Math.ceil((again - now()) / 1000) + " s" : "";
  return [i.reason ?? "", wait].filter((t) => t).join("; ");
}
