// The form of a new request.
import { el, write } from "./dom";
import { bytes } from "./format";
import { datasetsFrom, submit, type Dataset, type Request, type Submission } from "./transfer_api";
import type { AppContext } from "./transfer_context";
import { sentence } from "./transfer_poll";
import { openDialog } from "./transfer_dialog";
import { option } from "./transfer_requests";
import { files, whole } from "./transfer_text";

/** RequestForm is the form of a new request. Its key makes a repeated submission idempotent. */
class RequestForm {
  private readonly key = "page-" + Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
  private readonly name = el("input");
  private readonly names = el("datalist");
  private readonly summary = el("p", "meta name");
  private readonly to = el("select");
  private readonly from = el("div", "boxes");
  private readonly priority = el("input");
  private readonly mode = el("select");
  private readonly approve = el("input");
  private readonly comment = el("input");
  private readonly block = el("input");
  private readonly list = el("textarea");
  private readonly share = el("input");
  private readonly tries = el("input");
  private readonly hours = el("input");
  private readonly unchecked = el("input");
  private readonly problem = el("p", "fail");
  private readonly send = el("button", "button strong-button", "Submit");
  private readonly dialog: HTMLDialogElement;
  private timer = 0;
  private lookedUp = "";
  private dataset: Dataset | null = null;

  constructor(private readonly app: AppContext, initial: Partial<Submission>, private readonly onCreated: (r: Request) => void) {
    const form = this.build(initial);
    this.dialog = openDialog("New request", form);
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      void this.submit();
    });
    this.name.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.lookUp(), 250);
    });
    this.to.addEventListener("change", () => this.showSources());
    void this.lookUp();
    (this.name.value ? this.to : this.name).focus();
  }

  private build(initial: Partial<Submission>): HTMLFormElement {
    const sites = this.app.store.sites;
    this.names.id = "dataset-names";
    this.name.setAttribute("list", this.names.id);
    this.name.required = true;
    this.name.autocomplete = "off";
    this.name.placeholder = "/store/run1";
    this.name.value = initial.dataset ?? "";
    this.to.required = true;
    this.to.append(option("", "choose a site"), ...sites.map((s) => option(s.name, s.name + (s.up ? "" : " (down)"))));
    this.to.value = initial.to ?? "";
    number(this.priority, -10, 10, "0");
    number(this.tries, 1, 100, "5");
    number(this.hours, 1, 24 * 365, "never");
    this.mode.append(option("", "automatic"), option("pull", "pull: the destination's agent reads"), option("push", "push: the source's agent writes"), option("third", "third: storage servers copy (HTTP-TPC)"));
    for (const box of [this.approve, this.unchecked]) box.type = "checkbox";
    this.approve.checked = this.app.hasRole("approve");
    this.comment.maxLength = 500;
    this.list.rows = 3;
    this.list.placeholder = "one name per line; empty for all files";
    this.share.placeholder = "default";
    this.problem.setAttribute("role", "alert");
    this.summary.setAttribute("aria-live", "polite");
    this.send.type = "submit";
    const approver = this.app.hasRole("approve");
    const more = el("details", "", "", el("summary", "", "More"), el("div", "form", "", el("label", "", "Block", this.block), el("label", "", "Only these files", this.list),
      el("label", "", "Share (activity)", this.share), el("label", "", "Attempts per file, at most", this.tries), el("label", "", "Expires after (hours)", this.hours),
      checkbox(this.unchecked, "Accept files without a checksum (they are marked)")));
    return el("form", "form", "", el("label", "", "Dataset", this.name), this.names, this.summary, el("label", "", "To", this.to), this.from,
      el("div", "pair", "", el("label", "", "Priority, -10 to 10", this.priority), el("label", "", "Mode", this.mode)), el("label", "", "Comment", this.comment),
      ...(approver ? [checkbox(this.approve, "Approve immediately")] : [el("p", "meta", "The request starts after approval.")]), more, this.problem, el("div", "buttons", "", this.send));
  }

  /** lookUp shows the summary of the dataset while the user types its name. */
  private async lookUp(): Promise<void> {
    const name = this.name.value.trim();
    if (name === this.lookedUp && name !== "") return;
    this.lookedUp = name;
    try {
      const list = await datasetsFrom(name, 20);
      if (this.lookedUp !== name) return;
      this.names.replaceChildren(...list.map((d) => option(d.name, d.name)));
      if (name === "") return;
      this.dataset = list.find((d) => d.name === name) ?? null;
      write(this.summary, this.dataset ? summarize(this.dataset) : "No dataset with this name.");
    } catch (err) {
      if (this.lookedUp !== name) return;
      this.dataset = null;
      write(this.summary, sentence(err));
    }
    this.showSources();
  }

  /** showSources offers the sites that have files of the dataset as sources. */
  private showSources(): void {
    const checked = new Set(this.chosenSources());
    const all = Object.keys(this.dataset?.files_at ?? {}).filter((s) => s !== this.to.value);
    this.from.replaceChildren(...(all.length < 2 ? [] : [el("span", "meta", "Only from (default: the best source)"), ...all.map((s) => {
      const box = el("input");
      box.type = "checkbox";
      box.value = s;
      box.checked = checked.has(s);
      return checkbox(box, s);
    })]));
  }

  private chosenSources(): string[] {
    return [...this.from.querySelectorAll<HTMLInputElement>("input:checked")].map((b) => b.value);
  }

  private read(): Submission {
    const s: Submission = { key: this.key, dataset: this.name.value.trim(), to: this.to.value };
    const only = this.list.value.split("\n").map((l) => l.trim()).filter((l) => l);
    if (only.length) s.files = only;
    if (this.chosenSources().length) s.from = this.chosenSources();
    if (this.block.value.trim()) s.block = this.block.value.trim();
    if (this.mode.value) s.mode = this.mode.value;
    if (this.share.value.trim()) s.share = this.share.value.trim();
    if (this.priority.value) s.priority = Number(this.priority.value);
    if (this.tries.value) s.tries = Number(this.tries.value);
    if (this.hours.value) s.expires = new Date(Date.now() + Number(this.hours.value) * 3_600_000).toISOString();
    if (this.comment.value.trim()) s.comment = this.comment.value.trim();
    if (this.app.hasRole("approve") && this.approve.checked) s.approve = true;
    if (this.unchecked.checked) s.unchecked = true;
    return s;
  }

  private async submit(): Promise<void> {
    this.send.disabled = true;
    write(this.problem, "");
    try {
      const r = await submit(this.read());
      this.dialog.close();
      this.onCreated(r);
    } catch (err) {
      write(this.problem, sentence(err));
      this.send.disabled = false;
    }
  }
}

function number(input: HTMLInputElement, least: number, most: number, usual: string): void {
  input.type = "number";
  input.min = String(least);
  input.max = String(most);
  input.placeholder = usual;
}

/** summarize returns a text about a dataset and the sites that have it. */
function summarize(d: Dataset): string {
  const at = Object.entries(d.files_at ?? {}).map(([s, n]) => s + " has " + (n === d.files ? "all" : whole(n)));
  return files(d.files) + ", " + bytes(d.bytes) + (at.length ? "; " + at.join(", ") : "; no site has a replica");
}

/** checkbox returns a checkbox with its label. */
function checkbox(box: HTMLInputElement, label: string): HTMLElement {
  return el("label", "tick", "", box, el("span", "name", label));
}

/** newRequest opens the form, filled with initial; onCreated receives the created request. */
export function newRequest(app: AppContext, initial: Partial<Submission>, onCreated: (r: Request) => void): void {
  new RequestForm(app, initial, onCreated);
}
