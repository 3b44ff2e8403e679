// The tables of the live page. Whatever comes from elsewhere is set as text.
import { el, write } from "./dom";

export interface Cell {
  text: string;
  left?: boolean;
  strong?: boolean;
  box?: Box; // instead of the text
}

/** A Box can be checked. */
export interface Box {
  label: string;
  checked: boolean;
  changed: (checked: boolean) => void;
}

/** tick puts a box into a cell, or changes the one that is there: it may have the focus. */
function tick(td: HTMLTableCellElement, b: Box): void {
  let input = td.firstElementChild as HTMLInputElement | null;
  if (!input) {
    input = el("input");
    input.type = "checkbox";
    td.replaceChildren(input);
  }
  input.checked = b.checked;
  input.setAttribute("aria-label", b.label);
  const now = input;
  input.onchange = () => b.changed(now.checked);
}

/** A Grid is a table whose cells are written in place, so that what is selected or focused in it stays. */
export class Grid {
  readonly root = el("div", "scroll");
  private readonly body = el("tbody");

  constructor(heads: string[], name: string) {
    const row = el("tr");
    for (const h of heads) {
      const th = el("th", h.startsWith("<") ? "l" : "", h.replace(/^</, ""));
      th.scope = "col";
      row.append(th);
    }
    const table = el("table", "", "", el("caption", "unseen", name), el("thead", "", "", row), this.body);
    this.root.tabIndex = 0; // it scrolls with the arrow keys
    this.root.setAttribute("role", "region");
    this.root.setAttribute("aria-label", name);
    this.root.append(table);
  }

  show(rows: Cell[][]): void {
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((cells, i) => {
      const row = this.body.rows[i] ?? this.body.insertRow();
      while (row.cells.length > cells.length) row.deleteCell(-1);
      cells.forEach((c, k) => {
        const td = row.cells[k] ?? row.insertCell();
        const name = (c.left ? "l" : "") + (c.strong ? " strong" : "");
        if (td.className !== name) td.className = name;
        if (c.box) tick(td, c.box);
        else write(td, c.text);
      });
    });
  }
}
