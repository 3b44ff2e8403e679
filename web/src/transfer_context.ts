// The interfaces between the page and its views.
import type { TransferEvent, Submission, User } from "./transfer_api";
import type { SiteStore } from "./transfer_store";

/** AppContext is the part of the page that all views use. */
export interface AppContext {
  readonly user: User;
  readonly store: SiteStore;
  hasRole(role: "submit" | "approve"): boolean;
  /** notify shows the outcome of an action for a few seconds. */
  notify(text: string, good?: boolean): void;
  /** submit opens the form of a new request, filled with initial. */
  submit(initial: Partial<Submission>): void;
  /** handleError handles a failed request and returns the error text to show. */
  handleError(err: unknown): string;
}

/** View is the content of the page below the navigation links. */
export interface View {
  readonly root: HTMLElement;
  readonly title: string;
  /** onEvent handles an event of the coordinator. */
  onEvent(e: TransferEvent): void;
  /** onRefresh redraws the view after the store has received sites and links. */
  onRefresh(): void;
  /** close stops the view's requests. */
  close(): void;
}
