// What all views of the page share, and how they ask again and again.
import { Refusal, type Happening, type Submission, type Who } from "./transfer_api";
import type { Pulse } from "./transfer_pulse";

/** A Desk is what views share. */
export interface Desk {
  readonly who: Who;
  readonly pulse: Pulse;
  may(role: "submit" | "approve"): boolean;
  /** tell says once what was done, or why it was not. */
  tell(text: string, good?: boolean): void;
  /** submit opens the form of a new request, with what is known of it. */
  submit(of: Partial<Submission>): void;
  /** lost handles a request that failed and returns the sentence to show. */
  lost(err: unknown): string;
}

/** A View is one of the pages that the links at the top lead to. */
export interface View {
  readonly root: HTMLElement;
  readonly title: string;
  /** happened handles an event. */
  happened(e: Happening): void;
  /** beat handles new answers on sites and links. */
  beat(): void;
  end(): void;
}

/** back is the document's event that the coordinator answers again: what failed is asked at once. */
export const back = "weir-back";

/** A Poll does something again and again, while somebody looks. */
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

/** sentence is what an error says. */
export const sentence = (err: unknown): string => (err instanceof Error ? err.message : String(err));

/** code is that of an error response, "" if it has none. */
export const code = (err: unknown): string => (err instanceof Refusal ? err.code : "");

/** status is that of the answer, 0 if there was none. */
export const status = (err: unknown): number => (err instanceof Refusal ? err.status : 0);
