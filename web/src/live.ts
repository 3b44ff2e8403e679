// The script of the live page: it connects to the server, stores the received data
// and draws it.
import { RunData, type Entry, type Message } from "./live_data";
import { Page } from "./live_page";
import { EventStream } from "./event_stream";
import "./theme.css";
import "./live.css";

/** LiveApp connects the page with the event stream of the server. */
class LiveApp {
  private data = new RunData();
  private readonly page: Page;
  private readonly stream: EventStream<Message>;
  private run = new URLSearchParams(location.search).get("run") ?? ""; // "": the newest run
  private hosts: string[] = []; // hosts selected by the user; empty: the busiest hosts
  private entries: Entry[] = [];
  private shown = "";
  private redrawQueued = false;

  constructor(root: HTMLElement) {
    this.page = new Page(root, { run: (key) => this.choose(key), host: (name, drawn) => this.draw(name, drawn) });
    this.stream = new EventStream({ message: (m) => this.take(m), state: (text, good) => this.page.connection(text, good) }, (since) => this.address(since));
    this.page.connection("connecting", true);
    this.stream.open(true);
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
      if (m.run?.run !== this.data.about?.run) this.page.reset();
      this.data = new RunData();
    }
    this.data.take(m);
    if (m.runs) {
      this.entries = m.runs;
      this.shown = m.shown ?? "";
      this.page.runs(this.entries, this.shown, this.run);
    }
    this.redraw();
  }

  /** redraw draws the current data with the next frame of the browser; a hidden page is drawn when it becomes visible. */
  private redraw(): void {
    if (document.hidden) this.page.title(this.data);
    if (this.redrawQueued || document.hidden) return;
    this.redrawQueued = true;
    requestAnimationFrame(() => {
      this.redrawQueued = false;
      const begin = performance.now();
      this.page.show(this.data, this.run);
      this.recordDrawTime(begin);
    });
  }

  /** recordDrawTime stores the duration of the drawing in the page, for performance tests. */
  private recordDrawTime(begin: number): void {
    const body = document.body.dataset;
    body["first"] ??= String(Math.round(performance.now()));
    body["draw"] = (performance.now() - begin).toFixed(1);
    body["draws"] = String(Number(body["draws"] ?? 0) + 1);
  }

  private choose(key: string, addToHistory = true): void {
    this.run = key;
    if (addToHistory) history.pushState(null, "", key ? "/?run=" + encodeURIComponent(key) : "/");
    this.hosts = [];
    this.stream.open(true);
    this.page.runs(this.entries, this.shown, this.run);
  }

  /** draw requests the data of another selection of hosts. */
  private draw(name: string, drawn: boolean): void {
    const now = new Set(this.data.hosts.keys());
    if (drawn) now.add(name);
    else now.delete(name);
    this.hosts = [...now];
    this.stream.open(true);
  }
}

const root = document.getElementById("live");
if (root) new LiveApp(root);
