// The views of datasets: all, and the files of one with their replicas.
import { el, write } from "./dom";
import { dataset, datasets, datasetsFrom, placed, type Dataset, type Happening, type Placed } from "./transfer_api";
import type { Desk, View } from "./transfer_desk";
import { Poll, status } from "./transfer_poll";
import { deeds, link, Rows, text, type Column } from "./transfer_rows";
import { bytes, command, empty, files, sh, when, whole } from "./transfer_words";

const page = 100;

/** where says which sites have how much of a dataset. */
function where(d: Dataset): string {
  return Object.entries(d.files_at ?? {}).sort().map(([s, n]) => s + (n === d.files ? "" : " (" + whole(n) + " of " + whole(d.files) + ")")).join(", ") || "nowhere";
}

/** A Paged view walks through a list by the last name of each page. */
abstract class Paged<T> implements View {
  readonly root = el("div");
  abstract readonly title: string;
  protected readonly problem = el("p", "fail");
  protected readonly none = el("div");
  private readonly before = el("button", "button", "Previous");
  private readonly after = el("button", "button", "Next");
  private starts: string[] = [""];
  private last = "";
  protected readonly poll: Poll;

  constructor(protected readonly desk: Desk, protected readonly rows: Rows<T>, private readonly name: (x: T) => string) {
    this.problem.setAttribute("role", "alert");
    for (const b of [this.before, this.after]) b.type = "button";
    this.before.addEventListener("click", () => this.turn(-1));
    this.after.addEventListener("click", () => this.turn(1));
    this.root.append(this.problem, this.rows.root, this.none, el("div", "buttons pages", "", this.before, this.after));
    this.poll = new Poll(() => this.ask());
  }

  /** list asks for n after a name. */
  protected abstract list(after: string, n: number): Promise<T[]>;
  /** nothing is what to say where there is none. */
  protected abstract nothing(): HTMLElement | null;

  protected from(start: string): void {
    this.starts = [start];
    this.poll.kick();
  }

  private turn(by: number): void {
    if (by < 0) this.starts.pop();
    else this.starts.push(this.last);
    this.poll.kick();
  }

  private async ask(): Promise<number> {
    try {
      const all = await this.list(this.starts.at(-1)!, page + 1);
      const more = all.length > page;
      const shown = all.slice(0, page);
      this.rows.show(shown);
      const last = shown.at(-1);
      this.last = last === undefined ? "" : this.name(last);
      this.before.disabled = this.starts.length < 2;
      this.after.disabled = !more;
      this.before.parentElement!.hidden = this.before.disabled && !more;
      const none = all.length === 0 ? this.nothing() : null;
      if (!none || this.none.childElementCount === 0) this.none.replaceChildren(...(none ? [none] : []));
      write(this.problem, "");
    } catch (err) {
      write(this.problem, status(err) === 404 ? "There is no such dataset." : this.desk.lost(err));
    }
    return 10_000;
  }

  happened(e: Happening): void {
    if (!e.item) this.poll.kick(); // a request that ended has made replicas
  }

  beat(): void {
    // it asks by itself
  }

  end(): void {
    this.poll.end();
  }
}

/** Datasets is the view of all. */
export class Datasets extends Paged<Dataset> {
  readonly title = "Datasets";
  private begin = "";

  constructor(desk: Desk) {
    super(desk, new Rows("Datasets", (d) => d.name, [
      link("dataset", (d) => d.name, (d) => "#/dataset?name=" + encodeURIComponent(d.name), "l name long bare"),
      text("files", (d) => whole(d.files), "r"), text("size", (d) => bytes(d.bytes), "r"), text("blocks", (d) => whole(d.blocks), "r wide"), text("at", where, "l name reason"),
      { head: "", kind: "l buttons bare", fill: (td, d) => deeds(td, desk.may("submit") ? [{ label: "Transfer", title: "Transfer " + d.name, done: () => desk.submit({ dataset: d.name }) }] : []) },
    ]), (d) => d.name);
    const begin = el("input");
    begin.type = "search";
    begin.placeholder = "/store/run";
    const form = el("form", "filters", "", el("label", "", "From the name", begin));
    form.setAttribute("role", "search");
    form.addEventListener("submit", (e) => e.preventDefault());
    begin.addEventListener("input", () => {
      this.begin = begin.value.trim();
      this.from(this.begin);
    });
    this.root.prepend(form);
  }

  /** list also has the dataset whose name was typed. */
  protected async list(after: string, n: number): Promise<Dataset[]> {
    return after === this.begin ? datasetsFrom(after, n) : datasets(after, n);
  }

  protected nothing(): HTMLElement {
    if (this.begin) return empty("No dataset has this name, or one behind it in the alphabet.");
    return empty("No dataset is registered yet.", "Say which files of a site belong together. Their checksums are read there:", command("weir dataset add /store/run1 --site " + sh(this.desk.pulse.sites[0]?.name ?? "", "A")));
  }
}

const replicas: Column<Placed>[] = [
  text("file", (f) => f.name, "l name long bare"), text("size", (f) => bytes(f.size_bytes), "r"), text("adler32", (f) => f.adler32 ?? "", "l"), text("block", (f) => f.block ?? "", "l wide name"),
  text("at", (f) => (f.replicas ?? []).filter((r) => !r.bad).map((r) => r.site + (r.verified ? "" : " (never verified)")).join(", ") || "nowhere", "l name"),
  { head: "trouble", kind: "l name reason", fill: (td, f) => {
    write(td, (f.replicas ?? []).filter((r) => r.bad).map((r) => r.site + ": " + r.bad).join("; "));
    td.className = "l name reason fail";
    td.title = (f.replicas ?? []).map((r) => r.site + ": " + (r.verified ? "checksum read " + when(r.verified) : "checksum never read")).join("\n");
  } },
];

/** OneDataset is the view of one. */
export class OneDataset extends Paged<Placed> {
  readonly title: string;

  constructor(desk: Desk, private readonly of: string) {
    super(desk, new Rows("Files of the dataset", (f) => f.name, replicas), (f) => f.name);
    this.title = of;
    const facts = el("p", "meta name");
    const buttons = el("div", "buttons");
    deeds(buttons, desk.may("submit") ? [{ label: "Transfer", title: "Transfer " + of, strong: true, done: () => desk.submit({ dataset: of }) }] : []);
    this.root.prepend(el("h2", "first name", of), facts, buttons);
    dataset(of).then((d) => write(facts, [files(d.files), bytes(d.bytes), whole(d.blocks) + (d.blocks === 1 ? " block" : " blocks"), "at " + where(d)].join(" · ")), () => undefined);
  }

  protected list(after: string, n: number): Promise<Placed[]> {
    return placed(this.of, after, n);
  }

  protected nothing(): HTMLElement {
    return empty("The dataset has no files.");
  }
}
