// The script of the live page: connects, keeps what comes, shows it.
import { Data, type Entry, type Message } from "./live_data";
import { Page } from "./live_page";
import { EventStream } from "./event_stream";
import "./theme.css";
import "./live.css";

/** A Live is the page as a whole. */
class Live {
  private data = new Data();
  private readonly page: Page;
  private readonly wire: EventStream<Message>;
  private run = new URLSearchParams(location.search).get("run") ?? ""; // "": the newest
  private hosts: string[] = []; // that somebody has chosen; none: the busiest
  private entries: Entry[] = [];
  private shown = "";
  private asked = false; // a redraw

  constructor(root: HTMLElement) {
    this.page = new Page(root, { run: (key) => this.choose(key), host: (name, drawn) => this.draw(name, drawn) });
    this.wire = new EventStream({ message: (m) => this.take(m), state: (text, good) => this.page.connection(text, good) }, (since) => this.address(since));
    this.page.connection("connecting", true);
    this.wire.open(true);
    addEventListener("popstate", () => this.choose(new URLSearchParams(location.search).get("run") ?? "", false));
    document.addEventListener("visibilitychange", () => !document.hidden && this.redraw());
  }

  private address(since: string): string {
    const q = new URLSearchParams();
    if (this.run) q.set("run", this.run);
    for (const h of this.hosts) q.append("host", h);
    if (since) q.set("since", since);
    return "/events?" + q.toString();
  }

  private take(m: Message): void {
    if (m.reset) {
      if (m.run?.run !== this.data.about?.run) this.page.fresh();
      this.data = new Data();
    }
    this.data.take(m);
    if (m.runs) {
      this.entries = m.runs;
      this.shown = m.shown ?? "";
      this.page.runs(this.entries, this.shown, this.run);
    }
    this.redraw();
  }

  /** redraw shows what there is with the next picture of the screen; a page that nobody sees waits. */
  private redraw(): void {
    if (document.hidden) this.page.title(this.data);
    if (this.asked || document.hidden) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      const begin = performance.now();
      this.page.show(this.data, this.run);
      this.told(begin);
    });
  }

  /** told notes what drawing costs, for those who measure. */
  private told(begin: number): void {
    const body = document.body.dataset;
    body["first"] ??= String(Math.round(performance.now()));
    body["draw"] = (performance.now() - begin).toFixed(1);
    body["draws"] = String(Number(body["draws"] ?? 0) + 1);
  }

  private choose(key: string, note = true): void {
    this.run = key;
    if (note) history.pushState(null, "", key ? "/?run=" + encodeURIComponent(key) : "/");
    this.hosts = [];
    this.wire.open(true);
    this.page.runs(this.entries, this.shown, this.run);
  }

  /** draw asks for another choice of hosts. */
  private draw(name: string, drawn: boolean): void {
    const now = new Set(this.data.hosts.keys());
    if (drawn) now.add(name);
    else now.delete(name);
    this.hosts = [...now];
    this.wire.open(true);
  }
}

const root = document.getElementById("live");
if (root) new Live(root);
