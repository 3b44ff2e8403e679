// What all views of the page share.
import type { Happening, Submission, Who } from "./transfer_api";
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
