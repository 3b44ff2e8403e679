// The views of datasets: the list of datasets, and the files of a dataset with their replicas.
import { el, write } from "./dom";
import { dataset, datasets, datasetsFrom, datasetFiles, type Dataset, type TransferEvent, type DatasetFile } from "./transfer_api";
import type { AppContext, View } from "./transfer_context";
import { Poll, status } from "./transfer_poll";
import { setButtons, link, DataTable, text, type Column } from "./transfer_table";
import { bytes, command, emptyState, files, shellQuote, when, whole } from "./transfer_text";

const pageSize = 100;

/** locations lists the sites of a dataset, with the number of files of incomplete sites. */
function locations(d: Dataset): string {
  return Object.entries(d.files_at ?? {}).sort().map(([s, n]) => s + (n === d.files ? "" : " (" + whole(n) + " of " + whole(d.files) + ")")).join(", ") || "no site";
}

/** PagedView shows a sorted list page by page; a page starts after the last name of the previous page. */
abstract class PagedView<T> implements View {
  readonly root = el("div");
  abstract readonly title: string;
  protected readonly problem = el("p", "fail");
  protected readonly none = el("div");
  private readonly before = el("button", "button", "Previous");
  private readonly after = el("button", "button", "Next");
  private starts: string[] = [""];
  private last = "";
  protected readonly poll: Poll;

  constructor(protected readonly app: AppContext, protected readonly rows: DataTable<T>, private readonly name: (x: T) => string) {
    this.problem.setAttribute("role", "alert");
    for (const b of [this.before, this.after]) b.type = "button";
    this.before.addEventListener("click", () => this.turnPage(-1));
    this.after.addEventListener("click", () => this.turnPage(1));
    this.root.append(this.problem, this.rows.root, this.none, el("div", "buttons pages", "", this.before, this.after));
    this.poll = new Poll(() => this.load());
  }

  /** list requests the n entries after a name. */
  protected abstract list(after: string, n: number): Promise<T[]>;
  /** emptyList returns the content of an empty list. */
  protected abstract emptyList(): HTMLElement | null;

  protected restart(start: string): void {
    this.starts = [start];
    this.poll.refresh();
  }

  private turnPage(by: number): void {
    if (by < 0) this.starts.pop();
    else this.starts.push(this.last);
    this.poll.refresh();
  }

  private async load(): Promise<number> {
    try {
      const all = await this.list(this.starts.at(-1)!, pageSize + 1);
      const more = all.length > pageSize;
      const shown = all.slice(0, pageSize);
      this.rows.show(shown);
      const last = shown.at(-1);
      this.last = last === undefined ? "" : this.name(last);
      this.before.disabled = this.starts.length < 2;
      this.after.disabled = !more;
      this.before.parentElement!.hidden = this.before.disabled && !more;
      const none = all.length === 0 ? this.emptyList() : null;
      if (!none || this.none.childElementCount === 0) this.none.replaceChildren(...(none ? [none] : []));
      write(this.problem, "");
    } catch (err) {
      write(this.problem, status(err) === 404 ? "Dataset not found." : this.app.handleError(err));
    }
    return 10_000;
  }

  onEvent(e: TransferEvent): void {
    if (!e.item) this.poll.refresh(); // a completed request has created replicas
  }

  onRefresh(): void {
    // the view has a poll of its own
  }

  close(): void {
    this.poll.stop();
  }
}

/** Datasets is the view of all datasets. */
export class Datasets extends PagedView<Dataset> {
  readonly title = "Datasets";
  private begin = "";

  constructor(app: AppContext) {
    super(app, new DataTable("Datasets", (d) => d.name, [
      link("dataset", (d) => d.name, (d) => "#/dataset?name=" + encodeURIComponent(d.name), "l name long bare"),
      text("files", (d) => whole(d.files), "r"), text("size", (d) => bytes(d.bytes), "r"), text("blocks", (d) => whole(d.blocks), "r wide"), text("at", locations, "l name reason"),
      { head: "actions", kind: "l buttons bare", fill: (td, d) => setButtons(td, app.hasRole("submit") ? [{ label: "Transfer", title: "Transfer " + d.name, onClick: () => app.submit({ dataset: d.name }) }] : []) },
    ]), (d) => d.name);
    const begin = el("input");
    begin.type = "search";
    begin.placeholder = "/store/run";
    const form = el("form", "filters", "", el("label", "", "Starting at name", begin));
    form.setAttribute("role", "search");
    form.addEventListener("submit", (e) => e.preventDefault());
    begin.addEventListener("input", () => {
      this.begin = begin.value.trim();
      this.restart(this.begin);
    });
    this.root.prepend(el("h1", "first", this.title), form);
  }

  /** list includes the dataset with exactly the name in the filter. */
  protected async list(after: string, n: number): Promise<Dataset[]> {
    return after === this.begin ? datasetsFrom(after, n) : datasets(after, n);
  }

  protected emptyList(): HTMLElement {
    if (this.begin) return emptyState("No dataset with this name or a later name in alphabetical order.");
    return emptyState("No dataset is registered yet.", "Register files of a site as a dataset. Their checksums are read at the site:", command("weir dataset add /store/run1 --site " + shellQuote(this.app.store.sites[0]?.name ?? "", "A")));
  }
}

const replicas: Column<DatasetFile>[] = [
  text("file", (f) => f.name, "l name long bare"), text("size", (f) => bytes(f.size_bytes), "r"), text("adler32", (f) => f.adler32 ?? "", "l"), text("block", (f) => f.block ?? "", "l wide name"),
  text("at", (f) => (f.replicas ?? []).filter((r) => !r.bad).map((r) => r.site + (r.verified ? "" : " (unverified)")).join(", ") || "no site", "l name"),
  { head: "problem", kind: "l name reason", fill: (td, f) => {
    write(td, (f.replicas ?? []).filter((r) => r.bad).map((r) => r.site + ": " + r.bad).join("; "));
    td.className = "l name reason fail";
    td.title = (f.replicas ?? []).map((r) => r.site + ": " + (r.verified ? "checksum verified " + when(r.verified) : "checksum never verified")).join("\n");
  } },
];

/** OneDataset is the view of the files of a dataset. */
export class OneDataset extends PagedView<DatasetFile> {
  readonly title: string;

  constructor(app: AppContext, private readonly of: string) {
    super(app, new DataTable("Files of the dataset", (f) => f.name, replicas), (f) => f.name);
    this.title = of;
    const facts = el("p", "meta name");
    const buttons = el("div", "buttons");
    setButtons(buttons, app.hasRole("submit") ? [{ label: "Transfer", title: "Transfer " + of, strong: true, onClick: () => app.submit({ dataset: of }) }] : []);
    this.root.prepend(el("h1", "first name", of), facts, buttons);
    dataset(of).then((d) => write(facts, [files(d.files), bytes(d.bytes), whole(d.blocks) + (d.blocks === 1 ? " block" : " blocks"), "at " + locations(d)].join(" · ")), () => undefined);
  }

  protected list(after: string, n: number): Promise<DatasetFile[]> {
    return datasetFiles(this.of, after, n);
  }

  protected emptyList(): HTMLElement {
    return emptyState("The dataset has no files.");
  }
}
