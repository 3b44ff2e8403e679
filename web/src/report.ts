// The script of a report: it replaces each plot by a chart when the plot becomes
// visible, and keeps the plot for print.
import { el } from "./dom";
import { Chart } from "./chart";
import type { Figure } from "./figure";
import { Groups } from "./group";
import { buttons } from "./table";
import { canUnpack, unpack } from "./unpack";
import { follow } from "./contents";
import "./report.css";

const groups = new Groups();

function draw(place: HTMLElement, f: Figure): void {
  const svg = place.querySelector<SVGElement>(":scope > svg");
  if (!svg) return;
  const at = el("div", "chart-place");
  svg.after(at);
  const histogram = f.columns?.length; // the axis of a histogram has no group
  try {
    new Chart(at, f, { describedBy: f.id + "-d", ...(histogram ? {} : { group: groups.of(f) }) });
  } catch (e) {
    at.remove(); // the plot stays
    throw e;
  }
  at.before(buttons(f));
  place.classList.add("charted");
}

async function start(): Promise<void> {
  const data = document.getElementById("figures");
  if (!data || !canUnpack()) return;
  const figures = await unpack(data.textContent ?? "");
  data.remove();
  const waiting = new Map<Element, Figure>();
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const f = e.isIntersecting && waiting.get(e.target);
      if (!f) continue;
      seen.unobserve(e.target);
      waiting.delete(e.target);
      draw(e.target as HTMLElement, f);
    }
  }, { rootMargin: "400px" });
  for (const place of document.querySelectorAll<HTMLElement>("figure[data-figure]")) {
    const f = figures[Number(place.dataset.figure)];
    if (!f) continue;
    waiting.set(place, f);
    seen.observe(place);
  }
}

void start();
follow();
