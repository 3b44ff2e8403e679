// The table of requests, for the overview and for the view of all requests.
import { el, write } from "./dom";
import type { Request } from "./transfer_api";
import { requestActions } from "./transfer_actions";
import type { AppContext } from "./transfer_context";
import { setButtons, link, DataTable, text, type Column } from "./transfer_table";
import { ago, bar, timeLeft, percent, progress, rate, completedShare, elapsed, showStatus, when } from "./transfer_text";

/** requestTable returns a table of requests with the buttons of their actions; it calls after when an action has completed. */
export function requestTable(app: AppContext, name: string, after: () => void): DataTable<Request> {
  const columns: Column<Request>[] = [
    link("no.", (r) => String(r.id), (r) => "#/requests/" + r.id, "r bare"),
    link("dataset", (r) => r.dataset, (r) => "#/requests/" + r.id, "l name long bare"),
    text("to", (r) => r.to, "l name"),
    { head: "status", kind: "l bare", fill: (td, r) => showStatus(td, r.status) },
    { head: "progress", kind: "l progress bare", fill: progressCell },
    text("rate", (r) => rate(r.rate_bytes_per_second), "r wide"),
    text("by", (r) => r.by, "l wide name who"),
    { head: "created", kind: "l wide", fill: (td, r) => {
      write(td, ago(r.made));
      td.title = when(r.made);
    } },
    { head: "actions", kind: "l buttons bare", fill: (td, r) => setButtons(td, requestActions(app, r, after)) },
  ];
  return new DataTable(name, (r) => String(r.id), columns);
}

function progressCell(td: HTMLElement, r: Request): void {
  let words = td.querySelector<HTMLElement>(".progress-words");
  if (!words) td.append((words = el("div", "progress-words")));
  bar(td, r.count, "Files of request " + r.id);
  const parts = [r.count.files > 0 ? percent(completedShare(r.count)) : "", progress(r), timeLeft(r), r.ended && r.began ? "took " + elapsed(r.began, r.ended) : ""];
  write(words, parts.filter((p) => p).join(" · "));
}
