// Requests that are repeated, and the errors of requests.
import { Refusal } from "./transfer_api";

/** back is the document's event that the coordinator answers again: failed requests are repeated at once. */
export const back = "weir-back";

/** A Poll repeats requests while the page is visible. */
export class Poll {
  private timer = 0;
  private busy = false;
  private again = false;
  private over = false;
  private last = 0;
  private readonly look = (): void => {
    if (!document.hidden) this.kick();
  };

  /** work returns after how many milliseconds it is to be done again; 0: when it is kicked. */
  constructor(private readonly work: () => Promise<number>, private readonly least = 700) {
    document.addEventListener("visibilitychange", this.look);
    document.addEventListener(back, this.look);
    this.plan(0);
  }

  /** kick does it soon: now, or if it was just done, a moment later. */
  kick(): void {
    this.again = true;
    if (!this.busy) this.plan(Math.max(0, this.last + this.least - Date.now()));
  }

  end(): void {
    this.over = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.look);
    document.removeEventListener(back, this.look);
  }

  private plan(wait: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.run(), wait);
  }

  private async run(): Promise<void> {
    if (this.busy || this.over || document.hidden) return;
    this.busy = true;
    this.again = false;
    this.last = Date.now();
    let next = 0;
    try {
      next = await this.work();
    } finally {
      this.busy = false;
      if (!this.over && (this.again || next > 0)) this.plan(this.again ? this.least : next);
    }
  }
}

/** sentence returns the text of an error. */
export const sentence = (err: unknown): string => (err instanceof Error ? err.message : String(err));

/** code returns the code of an error response, "" if it has none. */
export const code = (err: unknown): string => (err instanceof Refusal ? err.code : "");

/** status returns the status of an error response, 0 if there was none. */
export const status = (err: unknown): number => (err instanceof Refusal ? err.status : 0);
