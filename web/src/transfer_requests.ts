// The view of all requests, with a filter and pages.
import { el, write } from "./dom";
import { requests, type Filter, type TransferEvent, type Request } from "./transfer_api";
import type { AppContext, View } from "./transfer_context";
import { Poll } from "./transfer_poll";
import { requestTable } from "./transfer_request_table";
import { command, emptyState } from "./transfer_text";

const pageSize = 50;
const statuses = ["awaiting approval", "resolving", "running", "completed", "partial", "failed", "cancelled", "rejected", "expired"];

/** Requests is the view of all requests. The address contains the filter, for bookmarks and links. */
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

  constructor(private readonly app: AppContext, q: URLSearchParams) {
    this.filter = { status: q.get("status") ?? "", open: q.get("open") ?? "", to: q.get("to") ?? "", dataset: q.get("dataset") ?? "", by: q.get("by") ?? "", before: Number(q.get("before") ?? 0) || 0 };
    this.rows = requestTable(app, "Requests", () => this.poll.refresh());
    this.root.append(el("h1", "first", this.title), this.form(), this.problem, this.rows.root, this.none, el("div", "buttons pages", "", this.newer, this.older));
    this.problem.setAttribute("role", "alert");
    this.poll = new Poll(() => this.load());
    this.onRefresh();
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
    form.addEventListener("change", () => this.applyForm());
    for (const b of [this.older, this.newer]) b.type = "button";
    this.newer.addEventListener("click", () => this.setFilter({ ...this.filter, before: 0 }));
    this.older.addEventListener("click", () => this.setFilter({ ...this.filter, before: this.lowest }));
    return form;
  }

  private lowest = 0;

  private applyForm(): void {
    const s = this.status.value;
    this.setFilter({ status: s === "open" ? "" : s, open: s === "open" ? "true" : "", to: this.to.value, dataset: this.dataset.value.trim(), by: this.by.value.trim(), before: 0 });
  }

  private setFilter(f: Filter): void {
    this.filter = f;
    const q = new URLSearchParams();
    for (const [k, v] of Object.entries(f)) if (v) q.set(k, String(v));
    history.replaceState(null, "", "#/requests" + (q.size ? "?" + q.toString() : ""));
    this.poll.refresh();
  }

  onEvent(e: TransferEvent): void {
    if (e.request) this.poll.refresh();
  }

  onRefresh(): void {
    const names = this.app.store.sites.map((s) => s.name);
    const key = JSON.stringify(names);
    if (key === this.sitesShown) return;
    this.sitesShown = key;
    const to = this.filter.to ?? "";
    if (to && !names.includes(to)) names.push(to);
    this.to.replaceChildren(option("", "any site"), ...names.map((n) => option(n, n)));
    this.to.value = to;
  }

  close(): void {
    this.poll.stop();
  }

  private async load(): Promise<number> {
    let list: Request[] = [];
    try {
      list = await requests({ ...this.filter, n: pageSize });
      write(this.problem, "");
    } catch (err) {
      write(this.problem, this.app.handleError(err));
      return 5000;
    }
    this.rows.show(list);
    this.lowest = list.at(-1)?.id ?? 0;
    this.older.disabled = list.length < pageSize;
    this.newer.disabled = !this.filter.before;
    this.older.parentElement!.hidden = this.older.disabled && this.newer.disabled;
    this.showEmpty(list.length === 0);
    return list.some((r) => r.status === "running" || r.status === "resolving") ? 2000 : 10_000;
  }

  private showEmpty(isEmpty: boolean): void {
    if (!isEmpty) return this.none.replaceChildren();
    if (this.none.childElementCount > 0) return;
    const filtered = Object.values(this.filter).some((v) => v);
    this.none.replaceChildren(filtered ? emptyState("No request matches the filter.", "Choose any status and any site to see all.")
      : emptyState("No requests yet.", "Request the transfer of a dataset to a site with New request above, or in a terminal:", command("weir transfer submit /store/run1 --to B --approve --wait")));
  }
}

/** option returns an option of a select element; its text may be external input. */
export function option(value: string, label: string): HTMLOptionElement {
  const o = el("option", "", label);
  o.value = value;
  return o;
}
