// The tables of the live page. External input is set as text only.
import { el, write } from "./dom";

export interface Cell {
  text: string;
  left?: boolean;
  strong?: boolean;
  box?: Checkbox; // replaces the text
}

/** Checkbox is a checkbox in a cell. */
export interface Checkbox {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}

/** setCheckbox adds a checkbox to a cell or updates the existing checkbox, which may have the focus. */
function setCheckbox(td: HTMLTableCellElement, b: Checkbox): void {
  let input = td.firstElementChild as HTMLInputElement | null;
  if (!input) {
    input = el("input");
    input.type = "checkbox";
    td.replaceChildren(input);
  }
  input.checked = b.checked;
  input.setAttribute("aria-label", b.label);
  const now = input;
  input.onchange = () => b.onChange(now.checked);
}

/** Grid is a table with cells that are updated in place, so that selections and the keyboard focus survive an update. */
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
    this.root.tabIndex = 0; // for scrolling with the arrow keys
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
        if (c.box) setCheckbox(td, c.box);
        else write(td, c.text);
      });
    });
  }
}
