// The first view: what moves now, what waits for somebody, what has happened.
import { el, write } from "./dom";
import { Charts } from "./live_charts";
import { datasets, requests, type Dataset, type Happening, type Request } from "./transfer_api";
import type { Desk, View } from "./transfer_desk";
import { Poll } from "./transfer_poll";
import { requestRows } from "./transfer_list";
import { Rows, type Column, text } from "./transfer_rows";
import { bits, command, empty, files, sh, when, whole } from "./transfer_words";

const most = 100; // requests that go on, and are shown
const few = 8; // of the latest requests, where none goes on
const recent = 24 * 3600_000; // ms in which a request has ended that is shown because files are missing

/** Overview is the first view. */
export class Overview implements View {
  readonly root = el("div");
  readonly title = "Overview";
  private readonly cards = el("div", "cards");
  private readonly next = el("div");
  private readonly problem = el("p", "fail");
  private readonly rows;
  private readonly charts = new Charts("now-");
  private readonly trouble = el("div", "trouble");
  private readonly past = new Rows<Happening>("What happened", (e) => String(e.id), happenings);
  private readonly pastPart: HTMLElement;
  private readonly openHead = el("h2");
  private readonly openPart: HTMLElement;
  private readonly lacking;
  private readonly lackingPart: HTMLElement;
  private open: Request[] = [];
  private any: Dataset[] = [];
  private last: Request[] = [];
  private missing: Request[] = [];
  private known = false;
  private readonly poll: Poll;

  constructor(private readonly desk: Desk) {
    this.rows = requestRows(desk, "Requests that go on", () => this.poll.kick());
    this.problem.setAttribute("role", "alert");
    this.openPart = el("section", "", "", this.openHead, this.rows.root);
    this.lacking = requestRows(desk, "Requests that ended with files missing", () => this.poll.kick());
    this.lackingPart = el("section", "", "", el("h2", "", "Ended in the last 24 hours with files missing"), this.lacking.root);
    this.lackingPart.hidden = true;
    this.pastPart = el("section", "", "", el("h2", "", "What happened since this page was opened"), this.past.root);
    this.root.append(this.problem, this.cards, this.trouble, this.next, this.openPart, this.lackingPart, this.charts.root, this.pastPart);
    this.openPart.hidden = true;
    this.tellPast();
    this.poll = new Poll(() => this.ask());
  }

  happened(): void {
    this.tellPast();
    this.poll.kick();
  }

  private tellPast(): void {
    this.past.show(this.desk.pulse.events);
    this.pastPart.hidden = this.desk.pulse.events.length === 0;
  }

  beat(): void {
    this.charts.show([this.desk.pulse.figure()]);
    this.tell();
  }

  end(): void {
    this.poll.end();
  }

  private async ask(): Promise<number> {
    try {
      this.open = await requests({ open: "true", n: most });
      if (this.any.length === 0) this.any = await datasets("", 1);
      this.last = this.open.length > 0 ? [] : await requests({ n: few });
      const ended = (await Promise.all(["partial", "failed"].map((status) => requests({ status, n: few })))).flat();
      this.missing = ended.filter((r) => r.ended && Date.now() - Date.parse(r.ended) < recent).sort((a, b) => b.id - a.id).slice(0, few);
      this.known = true;
      write(this.problem, "");
    } catch (err) {
      write(this.problem, this.desk.lost(err));
    }
    this.tell();
    return this.open.some((r) => r.status !== "awaiting approval") ? 2000 : 10_000;
  }

  private tell(): void {
    const p = this.desk.pulse;
    if (!p.known || !this.known) return;
    const open = this.open;
    const waits = open.filter((r) => r.status === "awaiting approval").length;
    const up = p.sites.filter((s) => s.up).length;
    card(this.cards, 0, bits(p.rate), "on all links");
    const more = open.length >= most ? " or more" : "";
    card(this.cards, 1, files(open.reduce((n, r) => n + r.count.leased, 0)) + more, "moving now");
    card(this.cards, 2, files(open.reduce((n, r) => n + (r.status === "awaiting approval" ? 0 : r.count.queued + r.count.no_source), 0)) + more, "waiting for their turn");
    card(this.cards, 3, whole(open.length - waits) + more, "requests that move or wait", "#/requests?open=true");
    card(this.cards, 4, whole(waits), "waiting for approval", "#/requests?status=awaiting+approval", waits > 0 ? "warn" : "");
    card(this.cards, 5, up + " of " + p.sites.length, "sites up", "#/sites", up < p.sites.length ? "fail" : "");
    const down = p.sites.filter((s) => !s.up);
    const troubles = down.slice(0, 5).map((s) => s.name + " is down" + (s.problem ? ": " + s.problem : "."));
    troubles.push(...p.sites.filter((s) => s.up && s.problem).slice(0, 5).map((s) => s.name + ": " + s.problem));
    if (down.length > 5) troubles.push("and " + whole(down.length - 5) + " more sites are down");
    this.trouble.replaceChildren(...troubles.map((t) => el("p", "fail", t)));
    this.lacking.show(this.missing);
    this.lackingPart.hidden = this.missing.length === 0;
    const shown = open.length > 0 ? open : this.last;
    write(this.openHead, open.length > 0 ? "Requests that go on" : "The latest requests; none goes on now");
    this.rows.show(shown);
    this.openPart.hidden = shown.length === 0;
    this.nothing();
  }

  private shown = "";

  /** nothing says what to do next where there is nothing yet. */
  private nothing(): void {
    const p = this.desk.pulse;
    const step = p.sites.length === 0 ? "sites" : this.any.length === 0 ? "datasets" : this.open.length + this.last.length === 0 ? "requests" : "";
    if (step === this.shown) return;
    this.shown = step;
    const site = sh(p.sites[0]?.name ?? "", "A");
    const to = sh(p.sites[1]?.name ?? "", "B");
    const name = sh(this.any[0]?.name ?? "", "/store/run1");
    this.next.replaceChildren(...({
      sites: [noSites()],
      datasets: [empty("No dataset is registered yet.", "Say which files of a site belong together. Their checksums are read there:", command("weir dataset add /store/run1 --site " + site))],
      requests: [empty("Nothing was asked for yet.", "Ask for a dataset at another site: with New request above, or in a terminal:", command("weir transfer submit " + name + " --to " + to + " --approve --wait"))],
      "": [],
    }[step] ?? []));
  }
}

/** noSites says how the first site comes in. */
export const noSites = (): HTMLElement => empty("No site is known yet.", "An agent makes a folder a site, and tells the coordinator of itself. On the coordinator's machine:",
  command("weir agent --site A --root /data/a"), "For another machine, make a token; with it the command to run there is printed:", command("weir coordinator token --site A --out a.token"),
  "A storage server that can copy by itself (HTTP-TPC: XRootD, dCache, StoRM, EOS) needs no agent:", command("weir site add B --url https://HOST:1094/store"));

const happenings: Column<Happening>[] = [
  text("at", (e) => when(e.time), "r bare"),
  { head: "what", kind: "l name bare", fill: (td, e) => {
    if (!e.request) return write(td, e.text);
    let a = td.querySelector("a");
    if (!a) td.append((a = el("a")));
    a.setAttribute("href", "#/requests/" + e.request);
    write(a, e.text);
  } },
];

/** card writes a number that is seen from afar. */
export function card(cards: HTMLElement, i: number, value: string, what: string, to = "", kind = ""): void {
  let c = cards.children[i] as HTMLElement | undefined;
  if (!c) {
    const a = el(to ? "a" : "div", "card", "", el("b"), el("span"));
    if (to) a.setAttribute("href", to);
    cards.append((c = a));
  }
  write(c.children[0]!, value);
  write(c.children[1]!, what);
  c.children[0]!.className = kind;
}

