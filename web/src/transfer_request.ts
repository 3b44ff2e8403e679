// The view of one request: its progress, its files with their states, and the reasons for these states.
import { el, write } from "./dom";
import { Charts } from "./live_charts";
import { explain, items, manifest, now, request, type TransferEvent, type Item, type Request } from "./transfer_api";
import { requestActions } from "./transfer_actions";
import type { AppContext, View } from "./transfer_context";
import { Poll, status } from "./transfer_poll";
import { openFile } from "./transfer_file";
import { chart } from "./transfer_store";
import { setButtons, DataTable, text, type Column } from "./transfer_table";
import { ago, bar, bits, bytes, command, ended, files, timeLeft, timestamp, percent, progress, completedShare, elapsed, showStatus, stateOf, states, when, whole } from "./transfer_text";

const maxReasons = 8; // reasons in the list
const pageSize = 100; // files on a page: a request may have a million

/** OneRequest is the view of one request. */
export class OneRequest implements View {
  readonly root = el("div");
  readonly title: string;
  private readonly problem = el("p", "fail");
  private readonly head = el("h1", "first name");
  private readonly sign = el("span");
  private readonly facts = el("p", "meta name");
  private readonly remarks = el("p", "name");
  private readonly progressBar = el("div", "big-progress");
  private readonly progressText = el("p", "state");
  private readonly buttons = el("div", "buttons");
  private readonly manifestLink = el("a", "button", "Manifest");
  private readonly reasonList = el("ul", "reasons");
  private readonly reasonPart = el("section", "", "", el("h2", "", "Status of the files"), this.reasonList);
  private readonly chips = el("div", "chips");
  private readonly rows: DataTable<Item>;
  private readonly before = el("button", "button", "Previous");
  private readonly after = el("button", "button", "Next");
  private readonly place = el("span", "meta");
  private readonly none = el("p", "meta");
  private readonly charts = new Charts("request-");
  private r: Request | null = null;
  private state: string | null = null; // state filter of the file list; null: not chosen yet
  private starts: number[] = [0]; // the file ids after which the pages begin
  private readonly at: number[] = [];
  private readonly rates: number[] = [];
  private begin = 0;
  private reasonsAt = 0;
  private readonly poll: Poll;

  constructor(private readonly app: AppContext, private readonly id: number, q: URLSearchParams) {
    this.title = "Request " + id;
    write(this.head, this.title);
    this.state = q.get("state");
    this.rows = new DataTable("Files", (i) => String(i.id), this.columns());
    this.problem.setAttribute("role", "alert");
    this.manifestLink.href = manifest(id);
    this.manifestLink.download = "request-" + id + "-manifest.json";
    this.manifestLink.title = "Every file with its state, size and checksum, as JSON";
    this.chips.setAttribute("role", "group");
    this.chips.setAttribute("aria-label", "Filter of the files by state");
    for (const b of [this.before, this.after]) b.type = "button";
    this.before.addEventListener("click", () => this.turnPage(-1));
    this.after.addEventListener("click", () => this.turnPage(1));
    this.root.append(this.problem, el("div", "title-row", "", this.head, this.sign), this.facts, this.remarks, this.progressBar, this.progressText,
      el("div", "buttons", "", this.buttons, this.manifestLink), this.reasonPart, this.charts.root, el("section", "", "", el("h2", "", "Files"), this.chips, this.rows.root, this.none,
        el("div", "buttons pages", "", this.before, this.after, this.place)), el("div", "same", "", el("p", "meta", "In a terminal:"), command("weir transfer show " + id)));
    this.reasonPart.hidden = true;
    this.poll = new Poll(() => this.load());
  }

  onEvent(e: TransferEvent): void {
    if (e.request === this.id) {
      this.reasonsAt = 0;
      this.poll.refresh();
    }
  }

  onRefresh(): void {
    // the view has a poll of its own
  }

  close(): void {
    this.poll.stop();
  }

  private turnPage(by: number): void {
    if (by < 0) this.starts.pop();
    else this.starts.push(this.last);
    this.poll.refresh();
  }

  private filterBy(state: string): void {
    this.state = state;
    this.starts = [0];
    history.replaceState(null, "", "#/requests/" + this.id + (state ? "?state=" + encodeURIComponent(state) : ""));
    this.poll.refresh();
    this.renderStateFilter();
  }

  private async load(): Promise<number> {
    try {
      this.r = await request(this.id);
      this.state ??= this.r.count.failed > 0 ? "failed" : "";
      this.render(this.r);
      const [list] = await Promise.all([items(this.id, this.state, this.starts.at(-1)!, pageSize + 1), this.loadReasons(this.r)]);
      this.renderFiles(list); // last: elements above the list do not move it under the mouse
      write(this.problem, "");
    } catch (err) {
      write(this.problem, status(err) === 404 ? "Request " + this.id + " does not exist." : this.app.handleError(err));
      return 5000;
    }
    return ended(this.r.status) ? 30_000 : this.r.status === "awaiting approval" ? 10_000 : 1500;
  }

  private async loadReasons(r: Request): Promise<void> {
    if (ended(r.status)) {
      this.reasonPart.hidden = true;
      return;
    }
    if (Date.now() - this.reasonsAt < 5000) return;
    this.reasonsAt = Date.now();
    const all = (await explain(this.id, "")).reasons ?? [];
    const items = all.slice(0, maxReasons).map((x) => el("li", "name", "", el("b", "", x.files === 0 ? "" : (x.files === 1 && x.file ? x.file : files(x.files)) + ": "), document.createTextNode(x.text)));
    if (all.length > maxReasons) items.push(el("li", "meta", "and " + whole(all.length - maxReasons) + " more; select a file below for its own reasons."));
    this.reasonList.replaceChildren(...items);
    this.reasonPart.hidden = all.length === 0;
  }

  private render(r: Request): void {
    const c = r.count;
    document.title = r.id + " " + (ended(r.status) ? r.status : percent(completedShare(c))) + " · weir";
    write(this.head, r.id + ": " + r.dataset + (r.block ? ", block " + r.block : "") + " → " + r.to);
    showStatus(this.sign, r.status);
    const facts = ["requested by " + r.by + " " + ago(r.made), r.decided_by ? "decided by " + r.decided_by : "", r.from?.length ? "only from " + r.from.join(", ") : "", r.mode ? "mode " + r.mode : "", r.priority ? "priority " + r.priority : "",
      r.share && r.share !== "default" ? "share " + r.share : "", r.files?.length ? "only " + files(r.files.length) : "", r.unchecked ? "files without a checksum are accepted" : "", timestamp(r.expires) && !ended(r.status) ? "expires at " + when(r.expires) : "",
      r.ended ? "ended at " + when(r.ended) + (r.began ? " after " + elapsed(r.began, r.ended) : "") : r.began ? "for " + elapsed(r.began, "") : "", whole(c.attempts) + (c.attempts === 1 ? " attempt" : " attempts")];
    write(this.facts, facts.filter((f) => f).join(" · "));
    write(this.remarks, [r.comment ? "“" + r.comment + "”" : "", r.reason ?? ""].filter((t) => t).join(" · "));
    bar(this.progressBar, c, "Files");
    write(this.progressText, c.files > 0 ? [percent(completedShare(c)), progress(r), r.rate_bytes_per_second > 0 && !ended(r.status) ? bits(r.rate_bytes_per_second) : "", timeLeft(r)].filter((t) => t).join(" · ") : progress(r));
    setButtons(this.buttons, requestActions(this.app, r, () => this.poll.refresh()));
    this.manifestLink.hidden = c.files === 0;
    this.renderStateFilter();
    this.renderRate(r);
  }

  private renderRate(r: Request): void {
    if (ended(r.status) && this.rates.length === 0) return;
    if (!ended(r.status) && r.began) {
      this.begin ||= now();
      this.at.push((now() - this.begin) / 1000);
      this.rates.push(r.rate_bytes_per_second);
      if (this.at.length > 2400) [this.at, this.rates].forEach((l) => l.shift());
    }
    const some = this.rates.some((v) => v > 0) && this.at.length > 2;
    this.charts.show([some ? chart("rate", "Rate of this request", [{ name: "rate", color: 0, x: this.at, y: this.rates }], this.at, "Rate of the arriving data while this page is open.") : null]);
  }

  private renderStateFilter(): void {
    const r = this.r;
    if (!r) return;
    const all = [{ state: "", label: "all", n: r.count.files }, ...states.map((s) => ({ state: s.state, label: s.label, n: r.count[s.field] }))].filter((s) => s.n > 0 || s.state === "" || s.state === this.state);
    this.chips.hidden = r.count.files === 0;
    setButtons(this.chips, all.map((s) => ({ label: s.label, title: "Files: " + s.label, onClick: () => this.filterBy(s.state) })));
    all.forEach((s, i) => {
      const b = this.chips.children[i] as HTMLElement;
      b.dataset["n"] = whole(s.n);
      b.className = "button chip " + (s.state ? stateOf(s.state).kind : "");
      b.setAttribute("aria-label", s.label + ": " + files(s.n));
      b.setAttribute("aria-pressed", String(s.state === (this.state ?? "")));
    });
  }

  private last = 0;

  private renderFiles(list: Item[]): void {
    const more = list.length > pageSize;
    list = list.slice(0, pageSize);
    this.last = list.at(-1)?.id ?? 0;
    this.rows.show(list);
    this.before.disabled = this.starts.length < 2;
    this.after.disabled = !more;
    this.before.parentElement!.hidden = this.before.disabled && !more;
    const from = (this.starts.length - 1) * pageSize;
    write(this.place, list.length ? whole(from + 1) + " to " + whole(from + list.length) : "");
    write(this.none, list.length ? "" : this.r?.status === "awaiting approval" || this.r?.status === "resolving" ? "The files are listed after approval." : "No file is in this state.");
  }

  private columns(): Column<Item>[] {
    return [
      { head: "file", kind: "l name long bare", fill: (td, i) => setButtons(td, [{ label: i.name, title: i.name + ": attempts and current state", onClick: () => openFile(this.app, this.id, i) }]) },
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

/** reason returns a short text with the reason for a file's state. */
export function reason(i: Item): string {
  const retryAt = timestamp(i.not_before);
  const wait = i.state === "queued" && retryAt > now() ? "retry in " + Math.ceil((retryAt - now()) / 1000) + " s" : "";
  return [i.reason ?? "", wait].filter((t) => t).join("; ");
}
