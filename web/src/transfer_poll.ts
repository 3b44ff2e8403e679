// Periodic requests, and the errors of requests.
import { ApiError } from "./transfer_api";

/** reconnected is the document's event after the connection to the coordinator is restored: failed requests are repeated at once. */
export const reconnected = "weir-back";

/** Poll repeats requests while the page is visible. */
export class Poll {
  private timer = 0;
  private busy = false;
  private pending = false;
  private stopped = false;
  private lastRun = 0;
  private readonly onVisible = (): void => {
    if (!document.hidden) this.refresh();
  };

  /** task returns the number of milliseconds until its next run; 0: it runs again only after refresh. */
  constructor(private readonly task: () => Promise<number>, private readonly minInterval = 700) {
    document.addEventListener("visibilitychange", this.onVisible);
    document.addEventListener(reconnected, this.onVisible);
    this.schedule(0);
  }

  /** refresh runs the task now, or after minInterval if it has just run. */
  refresh(): void {
    this.pending = true;
    if (!this.busy) this.schedule(Math.max(0, this.lastRun + this.minInterval - Date.now()));
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onVisible);
    document.removeEventListener(reconnected, this.onVisible);
  }

  private schedule(wait: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.run(), wait);
  }

  private async run(): Promise<void> {
    if (this.busy || this.stopped || document.hidden) return;
    this.busy = true;
    this.pending = false;
    this.lastRun = Date.now();
    let next = 0;
    try {
      next = await this.task();
    } finally {
      this.busy = false;
      if (!this.stopped && (this.pending || next > 0)) this.schedule(this.pending ? this.minInterval : next);
    }
  }
}

/** sentence returns the text of an error. */
export const sentence = (err: unknown): string => (err instanceof Error ? err.message : String(err));

/** code returns the code of an error response, "" if it has none. */
export const code = (err: unknown): string => (err instanceof ApiError ? err.code : "");

/** status returns the status of an error response, 0 if there was none. */
export const status = (err: unknown): number => (err instanceof ApiError ? err.status : 0);
