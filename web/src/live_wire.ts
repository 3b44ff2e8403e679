// The connection of a live page to its server: it comes back by itself, where it
// was, and says how it is.

export interface Listener<M> {
  message(m: M): void;
  /** state tells how the connection is; good is false while there is none. */
  state(text: string, good: boolean): void;
}

/** A page that has been hidden for so long closes its connection: browsers have few for each server, and an analysis is made for visible pages only. */
const unseen = 600_000;

/** A server that says nothing for so long is gone: it beats every five seconds. */
const silence = 17_000;
const longestWait = 10_000;

/** said is the sentence of an answer that is none: text, or JSON with an error. */
function said(text: string): string {
  try {
    text = String((JSON.parse(text) as { error?: unknown }).error ?? text);
  } catch {
    // it is text
  }
  return text.replace(/^weir: /, "").trim().slice(0, 300);
}

export class Wire<M> {
  private source: EventSource | null = null;
  private id = "";
  private fails = 0;
  private timer = 0;
  private quiet = 0;
  private retryAt = 0;
  private hiddenAt = 0;

  /** address returns what is asked for; since is the place to go on from, "" is none. A page that nobody sees lets go after rest milliseconds. */
  constructor(private readonly listener: Listener<M>, private readonly address: (since: string) => string, private readonly rest = unseen) {
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => {
      this.hiddenAt = document.hidden ? Date.now() : 0;
      if (!document.hidden) this.hurry();
    });
    setInterval(() => this.watch(), 1000);
  }

  /** open connects, or connects anew. fresh forgets where it was. */
  open(fresh: boolean): void {
    if (fresh) this.id = "";
    this.close();
    const url = this.address(this.id);
    const source = new EventSource(url);
    this.source = source;
    this.quiet = Date.now();
    source.addEventListener("open", () => this.source === source && this.listener.state("connected", true));
    source.addEventListener("message", (e) => {
      if (this.source !== source) return;
      this.quiet = Date.now();
      const m = JSON.parse(e.data as string) as M;
      this.id = e.lastEventId;
      if (this.fails > 0 || this.retryAt > 0) this.fails = this.retryAt = 0;
      this.listener.state("connected", true);
      this.listener.message(m);
    });
    source.addEventListener("gone", (e) => {
      if (this.source === source) this.lost((JSON.parse((e as MessageEvent<string>).data) as { problem: string }).problem);
    });
    source.addEventListener("error", () => {
      if (this.source === source) void this.why(url);
    });
  }

  /** close lets the connection go, until open. */
  close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    this.retryAt = 0;
  }

  /** why asks once more, to learn what the browser keeps to itself. */
  private async why(url: string): Promise<void> {
    this.close();
    let text = "connection lost";
    const stop = new AbortController();
    try {
      const r = await fetch(url, { signal: stop.signal });
      if (!r.ok) text = said(await r.text());
    } catch {
      // there is no server
    }
    stop.abort();
    this.lost(text);
  }

  /** lost says so and tries again a little later, each time a little later than that. */
  private lost(text: string): void {
    this.close();
    const wait = Math.min(longestWait, 1000 * 2 ** this.fails++);
    this.retryAt = Date.now() + wait;
    this.problem = text;
    this.timer = setTimeout(() => this.open(false), wait);
    this.tell();
  }

  private problem = "";

  private tell(): void {
    const left = Math.max(0, Math.ceil((this.retryAt - Date.now()) / 1000));
    this.listener.state(this.problem + ", trying again" + (left > 0 ? " in " + left + " s" : ""), false);
  }

  private watch(): void {
    if (this.hiddenAt > 0 && Date.now() - this.hiddenAt > this.rest) {
      this.close();
      this.fails = 0;
      this.listener.state("resting until somebody looks", false);
    } else if (this.retryAt > 0) this.tell();
    else if (this.source && Date.now() - this.quiet > silence) this.lost("connection lost");
  }

  /** hurry tries again at once: the network is back, or somebody looks again. */
  hurry(): void {
    if (this.retryAt > 0 || !this.source) this.open(false);
  }
}
