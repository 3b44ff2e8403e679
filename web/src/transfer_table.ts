// Tables with a key for each row. DataTable are updated in place, so that selections and
// the keyboard focus survive an update.
import { el, write } from "./dom";

/** Column describes a column: fill writes a cell, kind is the CSS class of its cells. */
export interface Column<T> {
  head: string;
  kind?: string;
  fill(td: HTMLTableCellElement, x: T): void;
}

/** text returns a column of texts. */
export const text = <T>(head: string, of: (x: T) => string, kind = "l"): Column<T> => ({ head, kind, fill: (td, x) => write(td, of(x)) });

/** link returns a column of links within the page. */
export const link = <T>(head: string, of: (x: T) => string, to: (x: T) => string, kind = "l name"): Column<T> => ({
  head, kind,
  fill: (td, x) => {
    let a = td.firstElementChild as HTMLAnchorElement | null;
    if (!a) td.append((a = el("a")));
    write(a, of(x));
    if (a.getAttribute("href") !== to(x)) a.setAttribute("href", to(x));
  },
});

/** ButtonSpec describes a button. */
export interface ButtonSpec {
  label: string;
  title: string;
  strong?: boolean;
  onClick(): void;
}

/** setButtons updates the buttons of an element; remaining buttons keep the keyboard focus. */
export function setButtons(parent: HTMLElement, specs: ButtonSpec[]): void {
  if (parent.classList.contains("buttons") && parent instanceof HTMLTableCellElement) {
    const inner = (parent.firstElementChild as HTMLElement | null) ?? el("div", "row-buttons");
    if (!inner.parentElement && specs.length > 0) parent.append(inner);
    parent = inner;
  }
  const there = new Map([...parent.querySelectorAll<HTMLButtonElement>(":scope > button")].map((b) => [b.textContent ?? "", b]));
  const wanted = specs.map((d) => {
    const b = there.get(d.label) ?? el("button", "", d.label);
    b.type = "button";
    b.className = d.strong ? "button strong-button" : "button";
    b.setAttribute("aria-label", d.title);
    b.title = d.title;
    b.onclick = (e) => {
      e.stopPropagation();
      d.onClick();
    };
    return b;
  });
  if (wanted.length !== parent.children.length || wanted.some((b, i) => parent.children[i] !== b)) parent.replaceChildren(...wanted);
}

/** DataTable is a table; the view shows a text for an empty table below it. */
export class DataTable<T> {
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
    this.root.tabIndex = 0; // for scrolling with the arrow keys
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
          td.dataset["head"] = c.head; // the label of the cell on narrow screens, which have no header row
          row.append(td);
        }
      }
      if (this.body.rows[i] !== row) this.body.insertBefore(row, this.body.rows[i] ?? null);
      this.columns.forEach((c, k) => c.fill(row.cells[k]!, x));
    });
    this.root.hidden = list.length === 0;
  }
}
