// The form of a new request.
import { el, write } from "./dom";
import { bytes } from "./format";
import { datasetsFrom, submit, type Dataset, type Request, type Submission } from "./transfer_api";
import type { Desk } from "./transfer_desk";
import { sentence } from "./transfer_poll";
import { open } from "./transfer_dialog";
import { option } from "./transfer_requests";
import { files, whole } from "./transfer_words";

/** A Form asks what is wanted where. The same form sent twice is the same request. */
class Form {
  private readonly key = "page-" + Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
  private readonly name = el("input");
  private readonly names = el("datalist");
  private readonly found = el("p", "meta name");
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
  private looked = "";
  private there: Dataset | null = null;

  constructor(private readonly desk: Desk, of: Partial<Submission>, private readonly made: (r: Request) => void) {
    const form = this.build(of);
    this.dialog = open("New request", form);
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      void this.submit();
    });
    this.name.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.look(), 250);
    });
    this.to.addEventListener("change", () => this.sources());
    void this.look();
    (this.name.value ? this.to : this.name).focus();
  }

  private build(of: Partial<Submission>): HTMLFormElement {
    const sites = this.desk.pulse.sites;
    this.names.id = "dataset-names";
    this.name.setAttribute("list", this.names.id);
    this.name.required = true;
    this.name.autocomplete = "off";
    this.name.placeholder = "/store/run1";
    this.name.value = of.dataset ?? "";
    this.to.required = true;
    this.to.append(option("", "choose a site"), ...sites.map((s) => option(s.name, s.name + (s.up ? "" : " (down now)"))));
    this.to.value = of.to ?? "";
    number(this.priority, -10, 10, "0");
    number(this.tries, 1, 100, "5");
    number(this.hours, 1, 24 * 365, "never");
    this.mode.append(option("", "whatever works"), option("pull", "pull: the destination's agent reads"), option("push", "push: the source's agent writes"), option("third", "third: storage servers copy (HTTP-TPC)"));
    for (const box of [this.approve, this.unchecked]) box.type = "checkbox";
    this.approve.checked = this.desk.may("approve");
    this.comment.maxLength = 500;
    this.list.rows = 3;
    this.list.placeholder = "one name a line; empty: all";
    this.share.placeholder = "default";
    this.problem.setAttribute("role", "alert");
    this.found.setAttribute("aria-live", "polite");
    this.send.type = "submit";
    const may = this.desk.may("approve");
    const more = el("details", "", "", el("summary", "", "More"), el("div", "form", "", el("label", "", "Block", this.block), el("label", "", "Only these files", this.list),
      el("label", "", "Share (activity)", this.share), el("label", "", "Attempts at a file, at most", this.tries), el("label", "", "Give up after hours", this.hours),
      tick(this.unchecked, "Accept files without a checksum; they are marked")));
    return el("form", "form", "", el("label", "", "Dataset", this.name), this.names, this.found, el("label", "", "To", this.to), this.from,
      el("div", "pair", "", el("label", "", "Priority, -10 to 10", this.priority), el("label", "", "Mode", this.mode)), el("label", "", "Comment", this.comment),
      ...(may ? [tick(this.approve, "Approve it at once")] : [el("p", "meta", "It begins when somebody who may has approved it.")]), more, this.problem, el("div", "buttons", "", this.send));
  }

  /** look says what is known of the dataset while its name is typed. */
  private async look(): Promise<void> {
    const name = this.name.value.trim();
    if (name === this.looked && name !== "") return;
    this.looked = name;
    try {
      const list = await datasetsFrom(name, 20);
      if (this.looked !== name) return;
      this.names.replaceChildren(...list.map((d) => option(d.name, d.name)));
      if (name === "") return;
      this.there = list.find((d) => d.name === name) ?? null;
      write(this.found, this.there ? summary(this.there) : "There is no dataset of this name yet.");
    } catch (err) {
      if (this.looked !== name) return;
      this.there = null;
      write(this.found, sentence(err));
    }
    this.sources();
  }

  /** sources offers the sites that have some of the dataset. */
  private sources(): void {
    const checked = new Set(this.chosen());
    const all = Object.keys(this.there?.files_at ?? {}).filter((s) => s !== this.to.value);
    this.from.replaceChildren(...(all.length < 2 ? [] : [el("span", "meta", "Only from (none: from wherever it is best)"), ...all.map((s) => {
      const box = el("input");
      box.type = "checkbox";
      box.value = s;
      box.checked = checked.has(s);
      return tick(box, s);
    })]));
  }

  private chosen(): string[] {
    return [...this.from.querySelectorAll<HTMLInputElement>("input:checked")].map((b) => b.value);
  }

  private read(): Submission {
    const s: Submission = { key: this.key, dataset: this.name.value.trim(), to: this.to.value };
    const only = this.list.value.split("\n").map((l) => l.trim()).filter((l) => l);
    if (only.length) s.files = only;
    if (this.chosen().length) s.from = this.chosen();
    if (this.block.value.trim()) s.block = this.block.value.trim();
    if (this.mode.value) s.mode = this.mode.value;
    if (this.share.value.trim()) s.share = this.share.value.trim();
    if (this.priority.value) s.priority = Number(this.priority.value);
    if (this.tries.value) s.tries = Number(this.tries.value);
    if (this.hours.value) s.expires = new Date(Date.now() + Number(this.hours.value) * 3_600_000).toISOString();
    if (this.comment.value.trim()) s.comment = this.comment.value.trim();
    if (this.desk.may("approve") && this.approve.checked) s.approve = true;
    if (this.unchecked.checked) s.unchecked = true;
    return s;
  }

  private async submit(): Promise<void> {
    this.send.disabled = true;
    write(this.problem, "");
    try {
      const r = await submit(this.read());
      this.dialog.close();
      this.made(r);
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

/** summary describes a dataset and the sites that have it. */
function summary(d: Dataset): string {
  const at = Object.entries(d.files_at ?? {}).map(([s, n]) => s + " has " + (n === d.files ? "all" : whole(n)));
  return files(d.files) + ", " + bytes(d.bytes) + (at.length ? "; " + at.join(", ") : "; no site has any of them");
}

/** tick is a box with its words beside it. */
function tick(box: HTMLInputElement, words: string): HTMLElement {
  return el("label", "tick", "", box, el("span", "name", words));
}

/** newRequest opens the form; made gets the request. */
export function newRequest(desk: Desk, of: Partial<Submission>, made: (r: Request) => void): void {
  new Form(desk, of, made);
}
