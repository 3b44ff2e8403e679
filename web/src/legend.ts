// The legend of a chart, with a button for each line that hides this line.
import { el } from "./dom";
import type { Figure, Line } from "./figure";

const svg = "http://www.w3.org/2000/svg";

/** legend returns a button for each line, and no buttons for a single line. */
export function legend(f: Figure, hidden: ReadonlySet<number>, toggle: (i: number) => void): HTMLElement[] {
  const lines = f.lines ?? [];
  if (lines.length < 2) return [];
  return lines.map((l, i) => {
    const b = el("button", "chart-button legend-entry", "", sample(l), el("span", "", l.name));
    b.type = "button";
    b.setAttribute("aria-pressed", String(!hidden.has(i)));
    b.title = "Show or hide";
    b.addEventListener("click", () => {
      toggle(i);
      b.setAttribute("aria-pressed", String(!hidden.has(i)));
    });
    return b;
  });
}

function sample(l: Line): SVGElement {
  const s = document.createElementNS(svg, "svg");
  s.setAttribute("viewBox", "0 0 24 8");
  s.setAttribute("class", "c" + (l.color % 6));
  s.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(svg, "path");
  path.setAttribute("d", "M0 4H24");
  path.setAttribute("class", l.dash ? "line dash" : "line");
  s.append(path);
  return s;
}
