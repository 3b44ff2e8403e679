// Tables whose rows are known by a key and written in place, so that what is
// selected or focused in them stays while they change.
import { el, write } from "./dom";

/** A Column fills its cells; kind is a class of all of them. */
export interface Column<T> {
  head: string;
  kind?: string;
  fill(td: HTMLTableCellElement, x: T): void;
}

/** text is a column of texts. */
export const text = <T>(head: string, of: (x: T) => string, kind = "l"): Column<T> => ({ head, kind, fill: (td, x) => write(td, of(x)) });

/** link is a column of links within the page. */
export const link = <T>(head: string, of: (x: T) => string, to: (x: T) => string, kind = "l name"): Column<T> => ({
  head, kind,
  fill: (td, x) => {
    let a = td.firstElementChild as HTMLAnchorElement | null;
    if (!a) td.append((a = el("a")));
    write(a, of(x));
    if (a.getAttribute("href") !== to(x)) a.setAttribute("href", to(x));
  },
});

/** A Deed is a button. */
export interface Deed {
  label: string;
  title: string;
  strong?: boolean;
  done(): void;
}

/** deeds writes buttons into a place; those that stay keep the focus. */
export function deeds(place: HTMLElement, all: Deed[]): void {
  if (place.classList.contains("buttons") && place instanceof HTMLTableCellElement) {
    const inner = (place.firstElementChild as HTMLElement | null) ?? el("div", "row-buttons");
    if (!inner.parentElement && all.length > 0) place.append(inner);
    place = inner;
  }
  const there = new Map([...place.querySelectorAll<HTMLButtonElement>(":scope > button")].map((b) => [b.textContent ?? "", b]));
  const wanted = all.map((d) => {
    const b = there.get(d.label) ?? el("button", "", d.label);
    b.type = "button";
    b.className = d.strong ? "button strong-button" : "button";
    b.setAttribute("aria-label", d.title);
    b.title = d.title;
    b.onclick = (e) => {
      e.stopPropagation();
      d.done();
    };
    return b;
  });
  if (wanted.length !== place.children.length || wanted.some((b, i) => place.children[i] !== b)) place.replaceChildren(...wanted);
}

/** Rows is a table; what to say where there are none is below it. */
export class Rows<T> {
  readonly root = el("div", "scroll rows");
  private readonly body = el("tbody");
  private readonly rows = new Map<string, HTMLTableRowElement>();

  constructor(name: string, private readonly key: (x: T) => string, private readonly columns: Column<T>[]) {
    const head = el("tr");
    for (const c of columns) {
      const th = el("th", c.kind ?? "", c.head);
      th.scope = "col";
      head.append(th);
    }
    this.root.append(el("table", "", "", el("caption", "unseen", name), el("thead", "", "", head), this.body));
    this.root.setAttribute("role", "region");
    this.root.setAttribute("aria-label", name);
    this.root.tabIndex = 0; // it scrolls with the arrow keys
  }

  show(list: T[]): void {
    const keys = new Set(list.map(this.key));
    for (const [key, row] of this.rows) {
      if (keys.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    list.forEach((x, i) => {
      const key = this.key(x);
      let row = this.rows.get(key);
      if (!row) {
        this.rows.set(key, (row = el("tr")));
        for (const c of this.columns) {
          const td = el("td", c.kind ?? "");
          td.dataset["head"] = c.head; // where there is no room for a row of heads
          row.append(td);
        }
      }
      if (this.body.rows[i] !== row) this.body.insertBefore(row, this.body.rows[i] ?? null);
      this.columns.forEach((c, k) => c.fill(row.cells[k]!, x));
    });
    this.root.hidden = list.length === 0;
  }
}
