// The view of all requests, filtered, page by page.
import { el, write } from "./dom";
import { requests, type Filter, type Happening, type Request } from "./transfer_api";
import type { Desk, View } from "./transfer_desk";
import { Poll } from "./transfer_poll";
import { requestRows } from "./transfer_list";
import { command, empty } from "./transfer_words";

const page = 50;
const statuses = ["awaiting approval", "resolving", "running", "completed", "partial", "failed", "cancelled", "rejected", "expired"];

/** Requests is the view; what is asked for is in the address, so that it can be kept and sent. */
export class Requests implements View {
  readonly root = el("div");
  readonly title = "Requests";
  private readonly problem = el("p", "fail");
  private readonly status = el("select");
  private readonly to = el("select");
  private readonly dataset = el("input");
  private readonly by = el("input");
  private readonly older = el("button", "button", "Older");
  private readonly newer = el("button", "button", "Newest");
  private readonly none = el("div");
  private readonly rows;
  private filter: Filter;
  private sitesShown = "";
  private readonly poll: Poll;

  constructor(private readonly desk: Desk, q: URLSearchParams) {
    this.filter = { status: q.get("status") ?? "", open: q.get("open") ?? "", to: q.get("to") ?? "", dataset: q.get("dataset") ?? "", by: q.get("by") ?? "", before: Number(q.get("before") ?? 0) || 0 };
    this.rows = requestRows(desk, "Requests", () => this.poll.kick());
    this.root.append(this.form(), this.problem, this.rows.root, this.none, el("div", "buttons pages", "", this.newer, this.older));
    this.problem.setAttribute("role", "alert");
    this.poll = new Poll(() => this.ask());
    this.beat();
  }

  private form(): HTMLElement {
    this.status.append(option("", "any status"), option("open", "not ended"), ...statuses.map((s) => option(s, s)));
    this.status.value = this.filter.open ? "open" : this.filter.status ?? "";
    this.dataset.value = this.filter.dataset ?? "";
    this.by.value = this.filter.by ?? "";
    this.dataset.placeholder = "/store/run1";
    this.dataset.type = this.by.type = "search";
    const form = el("form", "filters", "", el("label", "", "Status", this.status), el("label", "", "To", this.to), el("label", "", "Dataset", this.dataset), el("label", "", "By", this.by));
    form.setAttribute("role", "search");
    form.addEventListener("submit", (e) => e.preventDefault());
    form.addEventListener("change", () => this.change());
    for (const b of [this.older, this.newer]) b.type = "button";
    this.newer.addEventListener("click", () => this.go({ ...this.filter, before: 0 }));
    this.older.addEventListener("click", () => this.go({ ...this.filter, before: this.lowest }));
    return form;
  }

  private lowest = 0;

  private change(): void {
    const s = this.status.value;
    this.go({ status: s === "open" ? "" : s, open: s === "open" ? "true" : "", to: this.to.value, dataset: this.dataset.value.trim(), by: this.by.value.trim(), before: 0 });
  }

  private go(f: Filter): void {
    this.filter = f;
    const q = new URLSearchParams();
    for (const [k, v] of Object.entries(f)) if (v) q.set(k, String(v));
    history.replaceState(null, "", "#/requests" + (q.size ? "?" + q.toString() : ""));
    this.poll.kick();
  }

  happened(e: Happening): void {
    if (e.request) this.poll.kick();
  }

  beat(): void {
    const names = this.desk.pulse.sites.map((s) => s.name);
    const key = JSON.stringify(names);
    if (key === this.sitesShown) return;
    this.sitesShown = key;
    const to = this.filter.to ?? "";
    if (to && !names.includes(to)) names.push(to);
    this.to.replaceChildren(option("", "any site"), ...names.map((n) => option(n, n)));
    this.to.value = to;
  }

  end(): void {
    this.poll.end();
  }

  private async ask(): Promise<number> {
    let list: Request[] = [];
    try {
      list = await requests({ ...this.filter, n: page });
      write(this.problem, "");
    } catch (err) {
      write(this.problem, this.desk.lost(err));
      return 5000;
    }
    this.rows.show(list);
    this.lowest = list.at(-1)?.id ?? 0;
    this.older.disabled = list.length < page;
    this.newer.disabled = !this.filter.before;
    this.older.parentElement!.hidden = this.older.disabled && this.newer.disabled;
    this.nothing(list.length === 0);
    return list.some((r) => r.status === "running" || r.status === "resolving") ? 2000 : 10_000;
  }

  private nothing(is: boolean): void {
    if (!is) return this.none.replaceChildren();
    if (this.none.childElementCount > 0) return;
    const filtered = Object.values(this.filter).some((v) => v);
    this.none.replaceChildren(filtered ? empty("No request is like that.", "Choose any status and any site to see all.")
      : empty("Nothing was asked for yet.", "Ask for a dataset at a site: with New request above, or in a terminal:", command("weir transfer submit /store/run1 --to B --approve --wait")));
  }
}

/** option is one of a choice; its text may come from elsewhere. */
export function option(value: string, words: string): HTMLOptionElement {
  const o = el("option", "", words);
  o.value = value;
  return o;
}
