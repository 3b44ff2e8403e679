// The event stream from the server to a live page. It reconnects automatically,
// continues after the last received event and reports its state.

export interface Listener<M> {
  /** message receives an event. */
  message(m: M): void;
  /** state receives the state of the connection as a text; good is false while disconnected. */
  state(text: string, good: boolean): void;
}

/** hiddenTimeout is the time after which a hidden page closes its connection: browsers limit the connections to a server, and the server analyzes for visible pages only. */
const hiddenTimeout = 600_000;

/** silenceTimeout is the time without data after which the connection is lost: the server sends a heartbeat every five seconds. */
const silenceTimeout = 17_000;
const maxWait = 10_000;

/** errorText returns the message of an error response, which is plain text or JSON. */
function errorText(text: string): string {
  try {
    text = String((JSON.parse(text) as { error?: unknown }).error ?? text);
  } catch {
    // plain text
  }
  return text.replace(/^weir: /, "").trim().slice(0, 300);
}

/** EventStream receives events of a server and reconnects after errors. */
export class EventStream<M> {
  private source: EventSource | null = null;
  private id = "";
  private failures = 0;
  private timer = 0;
  private receivedAt = 0;
  private retryAt = 0;
  private hiddenAt = 0;

  /** address returns the URL of the stream; since is the id of the last event, "" for a new stream. A hidden page closes the connection after maxHidden milliseconds. */
  constructor(private readonly listener: Listener<M>, private readonly address: (since: string) => string, private readonly maxHidden = hiddenTimeout) {
    addEventListener("online", () => this.reconnect());
    document.addEventListener("visibilitychange", () => {
      this.hiddenAt = document.hidden ? Date.now() : 0;
      if (!document.hidden) this.reconnect();
    });
    setInterval(() => this.watch(), 1000);
  }

  /** open connects or reconnects; fresh discards the position in the stream. */
  open(fresh: boolean): void {
    if (fresh) this.id = "";
    this.close();
    const url = this.address(this.id);
    const source = new EventSource(url);
    this.source = source;
    this.receivedAt = Date.now();
    source.addEventListener("open", () => this.source === source && this.listener.state("connected", true));
    source.addEventListener("message", (e) => {
      if (this.source !== source) return;
      this.receivedAt = Date.now();
      const m = JSON.parse(e.data as string) as M;
      this.id = e.lastEventId;
      if (this.failures > 0 || this.retryAt > 0) this.failures = this.retryAt = 0;
      this.listener.state("connected", true);
      this.listener.message(m);
    });
    source.addEventListener("gone", (e) => {
      if (this.source === source) this.retryLater((JSON.parse((e as MessageEvent<string>).data) as { problem: string }).problem);
    });
    source.addEventListener("error", () => {
      if (this.source === source) void this.findError(url);
    });
  }

  /** close closes the connection until the next call of open. */
  close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    this.retryAt = 0;
  }

  /** findError repeats the request to get the error text, which an EventSource does not expose. */
  private async findError(url: string): Promise<void> {
    this.close();
    let text = "connection lost";
    const stop = new AbortController();
    try {
      const r = await fetch(url, { signal: stop.signal });
      if (!r.ok) text = errorText(await r.text());
    } catch {
      // the server is unreachable
    }
    stop.abort();
    this.retryLater(text);
  }

  /** retryLater reports the error and reconnects after a delay that doubles with each failure. */
  private retryLater(text: string): void {
    this.close();
    const wait = Math.min(maxWait, 1000 * 2 ** this.failures++);
    this.retryAt = Date.now() + wait;
    this.problem = text;
    this.timer = setTimeout(() => this.open(false), wait);
    this.reportRetry();
  }

  private problem = "";

  private reportRetry(): void {
    const left = Math.max(0, Math.ceil((this.retryAt - Date.now()) / 1000));
    this.listener.state(this.problem + ", retrying" + (left > 0 ? " in " + left + " s" : ""), false);
  }

  private watch(): void {
    if (this.hiddenAt > 0 && Date.now() - this.hiddenAt > this.maxHidden) {
      this.close();
      this.failures = 0;
      this.listener.state("paused while the tab is hidden", false);
    } else if (this.retryAt > 0) this.reportRetry();
    else if (this.source && Date.now() - this.receivedAt > silenceTimeout) this.retryLater("connection lost");
  }

  /** reconnect retries immediately after the network has returned or the page has become visible. */
  reconnect(): void {
    if (this.retryAt > 0 || !this.source) this.open(false);
  }
}
