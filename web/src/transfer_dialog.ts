// Questions in front of the page. The browser keeps the keyboard in them, and
// Escape ends them.
import { el, write } from "./dom";

let number = 0;

/** open shows a dialog; it is gone when it closes. */
export function open(title: string, ...inside: Node[]): HTMLDialogElement {
  const head = el("h2", "", title);
  head.id = "dialog-" + ++number;
  const shut = el("button", "button shut", "Close");
  shut.type = "button";
  const d = el("dialog", "", "", el("div", "dialog-head", "", head, shut), ...inside);
  shut.addEventListener("click", () => d.close());
  d.setAttribute("aria-labelledby", head.id);
  d.addEventListener("close", () => d.remove());
  document.body.append(d);
  d.showModal();
  return d;
}

/** A Question is what is to be confirmed. */
export interface Question {
  title: string;
  text: string;
  yes: string;
  danger?: boolean;
  /** done does it; what it throws is shown, and the question stays. */
  done(reason: string): Promise<void>;
}

/** ask asks whether something shall be done, and why. */
export function ask(q: Question): void {
  const reason = el("input");
  reason.maxLength = 500;
  reason.placeholder = "for those who read it later; may be empty";
  const yes = el("button", q.danger ? "button strong-button danger" : "button strong-button", q.yes);
  yes.type = "submit";
  const no = el("button", "button", "Leave it as it is");
  no.type = "button";
  const problem = el("p", "fail");
  problem.setAttribute("role", "alert");
  const form = el("form", "form", "", el("p", "", q.text), el("label", "", "Reason", reason), problem, el("div", "buttons", "", yes, no));
  const d = open(q.title, form);
  reason.focus();
  no.addEventListener("click", () => d.close());
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    yes.disabled = true;
    write(problem, "");
    q.done(reason.value.trim()).then(() => d.close(), (err: Error) => {
      yes.disabled = false;
      write(problem, err.message);
    });
  });
}
