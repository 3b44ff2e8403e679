// The first view: active transfers, requests that await approval, and recent events.
import { el, write } from "./dom";
import { Charts } from "./live_charts";
import { datasets, requests, type Dataset, type TransferEvent, type Request } from "./transfer_api";
import type { AppContext, View } from "./transfer_context";
import { Poll } from "./transfer_poll";
import { requestTable } from "./transfer_request_table";
import { DataTable, type Column, text } from "./transfer_table";
import { bits, command, emptyState, files, shellQuote, when, whole } from "./transfer_text";

const maxActive = 100; // active requests in the table
const maxEnded = 8; // ended requests in a table
const missingPeriod = 24 * 3600_000; // ms after its end in which a request with missing files is shown

/** Overview is the view that the page opens with. */
export class Overview implements View {
  readonly root = el("div");
  readonly title = "Overview";
  private readonly cards = el("div", "cards");
  private readonly next = el("div");
  private readonly problem = el("p", "fail");
  private readonly rows;
  private readonly charts = new Charts("now-");
  private readonly problems = el("div", "trouble");
  private readonly events = new DataTable<TransferEvent>("Events", (e) => String(e.id), eventColumns);
  private readonly eventPart: HTMLElement;
  private readonly openHead = el("h2");
  private readonly openPart: HTMLElement;
  private readonly incomplete;
  private readonly incompletePart: HTMLElement;
  private open: Request[] = [];
  private datasets: Dataset[] = [];
  private latest: Request[] = [];
  private missing: Request[] = [];
  private loaded = false;
  private readonly poll: Poll;

  constructor(private readonly app: AppContext) {
    this.rows = requestTable(app, "Active requests", () => this.poll.refresh());
    this.problem.setAttribute("role", "alert");
    this.openPart = el("section", "", "", this.openHead, this.rows.root);
    this.incomplete = requestTable(app, "Requests that ended with missing files", () => this.poll.refresh());
    this.incompletePart = el("section", "", "", el("h2", "", "Ended in the last 24 hours with missing files"), this.incomplete.root);
    this.incompletePart.hidden = true;
    this.eventPart = el("section", "", "", el("h2", "", "Events since this page was opened"), this.events.root);
    this.root.append(el("h1", "first", this.title), this.problem, this.cards, this.problems, this.next, this.openPart, this.incompletePart, this.charts.root, this.eventPart);
    this.openPart.hidden = true;
    this.showEvents();
    this.poll = new Poll(() => this.load());
  }

  onEvent(): void {
    this.showEvents();
    this.poll.refresh();
  }

  private showEvents(): void {
    this.events.show(this.app.store.events);
    this.eventPart.hidden = this.app.store.events.length === 0;
  }

  onRefresh(): void {
    this.charts.show([this.app.store.figure()]);
    this.render();
  }

  close(): void {
    this.poll.stop();
  }

  private async load(): Promise<number> {
    try {
      this.open = await requests({ open: "true", n: maxActive });
      if (this.datasets.length === 0) this.datasets = await datasets("", 1);
      this.latest = this.open.length > 0 ? [] : await requests({ n: maxEnded });
      const ended = (await Promise.all(["partial", "failed"].map((status) => requests({ status, n: maxEnded })))).flat();
      this.missing = ended.filter((r) => r.ended && Date.now() - Date.parse(r.ended) < missingPeriod).sort((a, b) => b.id - a.id).slice(0, maxEnded);
      this.loaded = true;
      write(this.problem, "");
    } catch (err) {
      write(this.problem, this.app.handleError(err));
    }
    this.render();
    return this.open.some((r) => r.status !== "awaiting approval") ? 2000 : 10_000;
  }

  private render(): void {
    const p = this.app.store;
    if (!p.loaded || !this.loaded) return;
    const open = this.open;
    const awaiting = open.filter((r) => r.status === "awaiting approval").length;
    const up = p.sites.filter((s) => s.up).length;
    card(this.cards, 0, bits(p.rate), "total rate");
    const more = open.length >= maxActive ? " or more" : "";
    card(this.cards, 1, files(open.reduce((n, r) => n + r.count.leased, 0)) + more, "in transfer");
    card(this.cards, 2, files(open.reduce((n, r) => n + (r.status === "awaiting approval" ? 0 : r.count.queued + r.count.no_source), 0)) + more, "queued");
    card(this.cards, 3, whole(open.length - awaiting) + more, "active requests", "#/requests?open=true");
    card(this.cards, 4, whole(awaiting), "waiting for approval", "#/requests?status=awaiting+approval", awaiting > 0 ? "warn" : "");
    card(this.cards, 5, up + " of " + p.sites.length, "sites up", "#/sites", up < p.sites.length ? "fail" : "");
    const down = p.sites.filter((s) => !s.up);
    const texts = down.slice(0, 5).map((s) => s.name + " is down" + (s.problem ? ": " + s.problem : "."));
    texts.push(...p.sites.filter((s) => s.up && s.problem).slice(0, 5).map((s) => s.name + ": " + s.problem));
    if (down.length > 5) texts.push("and " + whole(down.length - 5) + " more sites are down");
    this.problems.replaceChildren(...texts.map((t) => el("p", "fail", t)));
    this.incomplete.show(this.missing);
    this.incompletePart.hidden = this.missing.length === 0;
    const shown = open.length > 0 ? open : this.latest;
    write(this.openHead, open.length > 0 ? "Active requests" : "Latest requests (none active)");
    this.rows.show(shown);
    this.openPart.hidden = shown.length === 0;
    this.showNextStep();
  }

  private shown = "";

  /** showNextStep shows the next step of an installation without sites, datasets or requests. */
  private showNextStep(): void {
    const p = this.app.store;
    const step = p.sites.length === 0 ? "sites" : this.datasets.length === 0 ? "datasets" : this.open.length + this.latest.length === 0 ? "requests" : "";
    if (step === this.shown) return;
    this.shown = step;
    const site = shellQuote(p.sites[0]?.name ?? "", "A");
    const to = shellQuote(p.sites[1]?.name ?? "", "B");
    const name = shellQuote(this.datasets[0]?.name ?? "", "/store/run1");
    this.next.replaceChildren(...({
      sites: [noSites()],
      datasets: [emptyState("No dataset is registered yet.", "Register files of a site as a dataset. Their checksums are read at the site:", command("weir dataset add /store/run1 --site " + site))],
      requests: [emptyState("No requests yet.", "Request the transfer of a dataset to another site with New request above, or in a terminal:", command("weir transfer submit " + name + " --to " + to + " --approve --wait"))],
      "": [],
    }[step] ?? []));
  }
}

/** noSites returns instructions for adding the first site. */
export const noSites = (): HTMLElement => emptyState("No sites yet.", "An agent serves a folder as a site and registers with the coordinator. On the coordinator's machine, run:",
  command("weir agent --site A --root /data/a"), "For an agent on another machine, create a token. This command also prints the command for the agent's machine:", command("weir coordinator token --site A --out a.token"),
  "A storage server with support for third-party copies (HTTP-TPC: XRootD, dCache, StoRM, EOS) needs no agent:", command("weir site add B --url https://HOST:1094/store"));

const eventColumns: Column<TransferEvent>[] = [
  text("time", (e) => when(e.time), "r bare"),
  { head: "event", kind: "l name bare", fill: (td, e) => {
    if (!e.request) return write(td, e.text);
    let a = td.querySelector("a");
    if (!a) td.append((a = el("a")));
    a.setAttribute("href", "#/requests/" + e.request);
    write(a, e.text);
  } },
];

/** card shows a key figure in large digits, with its label. */
export function card(cards: HTMLElement, i: number, value: string, label: string, to = "", kind = ""): void {
  let c = cards.children[i] as HTMLElement | undefined;
  if (!c) {
    const a = el(to ? "a" : "div", "card", "", el("b"), el("span"));
    if (to) a.setAttribute("href", to);
    cards.append((c = a));
  }
  write(c.children[0]!, value);
  write(c.children[1]!, label);
  c.children[0]!.className = kind;
}

