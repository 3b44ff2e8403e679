// The table of requests, for the overview and the list.
import { el, write } from "./dom";
import type { Request } from "./transfer_api";
import { deedsOf } from "./transfer_deeds";
import type { Desk } from "./transfer_desk";
import { deeds, link, Rows, text, type Column } from "./transfer_rows";
import { ago, bar, left, percent, progress, rate, share, span, stamp, when } from "./transfer_words";

/** requestRows is a table of requests whose buttons work; after is called when one was pressed. */
export function requestRows(desk: Desk, name: string, after: () => void): Rows<Request> {
  const columns: Column<Request>[] = [
    link("no.", (r) => String(r.id), (r) => "#/requests/" + r.id, "r bare"),
    link("dataset", (r) => r.dataset, (r) => "#/requests/" + r.id, "l name long bare"),
    text("to", (r) => r.to, "l name"),
    { head: "status", kind: "l bare", fill: (td, r) => stamp(td, r.status) },
    { head: "progress", kind: "l progress bare", fill: progressCell },
    text("rate", (r) => rate(r.rate_bytes_per_second), "r wide"),
    text("by", (r) => r.by, "l wide name who"),
    { head: "made", kind: "l wide", fill: (td, r) => {
      write(td, ago(r.made));
      td.title = when(r.made);
    } },
    { head: "", kind: "l buttons bare", fill: (td, r) => deeds(td, deedsOf(desk, r, after)) },
  ];
  return new Rows(name, (r) => String(r.id), columns);
}

function progressCell(td: HTMLElement, r: Request): void {
  let words = td.querySelector<HTMLElement>(".progress-words");
  if (!words) td.append((words = el("div", "progress-words")));
  bar(td, r.count, "Files of request " + r.id);
  const parts = [r.count.files > 0 ? percent(share(r.count)) : "", progress(r), left(r), r.ended && r.began ? "took " + span(r.began, r.ended) : ""];
  write(words, parts.filter((p) => p).join(" · "));
}
