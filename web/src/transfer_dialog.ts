// Modal dialogs of the page. The browser keeps the keyboard focus inside the
// dialog, and Escape closes it.
import { el, write } from "./dom";

let number = 0;

/** openDialog shows a modal dialog and removes it from the page when it closes. */
export function openDialog(title: string, ...inside: Node[]): HTMLDialogElement {
  const head = el("h2", "", title);
  head.id = "dialog-" + ++number;
  const closeButton = el("button", "button shut", "Close");
  closeButton.type = "button";
  const d = el("dialog", "", "", el("div", "dialog-head", "", head, closeButton), ...inside);
  closeButton.addEventListener("click", () => d.close());
  d.setAttribute("aria-labelledby", head.id);
  d.addEventListener("close", () => d.remove());
  document.body.append(d);
  d.showModal();
  return d;
}

/** Confirmation describes an action that the user has to confirm. */
export interface Confirmation {
  title: string;
  text: string;
  confirmLabel: string;
  danger?: boolean;
  /** onConfirm performs the action; if it throws, the dialog shows the error and stays open. */
  onConfirm(reason: string): Promise<void>;
}

/** confirmAction opens a dialog that requests a confirmation and an optional reason. */
export function confirmAction(q: Confirmation): void {
  const reason = el("input");
  reason.maxLength = 500;
  reason.placeholder = "optional";
  const yes = el("button", q.danger ? "button strong-button danger" : "button strong-button", q.confirmLabel);
  yes.type = "submit";
  const decline = el("button", "button", "Keep unchanged");
  decline.type = "button";
  const problem = el("p", "fail");
  problem.setAttribute("role", "alert");
  const form = el("form", "form", "", el("p", "", q.text), el("label", "", "Reason", reason), problem, el("div", "buttons", "", yes, decline));
  const d = openDialog(q.title, form);
  reason.focus();
  decline.addEventListener("click", () => d.close());
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    yes.disabled = true;
    write(problem, "");
    q.onConfirm(reason.value.trim()).then(() => d.close(), (err: Error) => {
      yes.disabled = false;
      write(problem, err.message);
    });
  });
}
