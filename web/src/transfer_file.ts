// The dialog of one file of a request: its attempts, and the reasons for its
// current state.
import { el, write } from "./dom";
import { attempts, explain, type Attempt, type Item } from "./transfer_api";
import type { AppContext } from "./transfer_context";
import { openDialog } from "./transfer_dialog";
import { DataTable, text, type Column } from "./transfer_table";
import { bits, bytes, seconds, timestamp, stateOf, when } from "./transfer_text";

const duration = (a: Attempt): number => Math.max(0, timestamp(a.end) - timestamp(a.begin)) / 1000;

const columns: Column<Attempt>[] = [
  text("no.", (a) => String(a.epoch), "r"),
  text("start", (a) => when(a.begin), "r"),
  text("from", (a) => a.source, "l name"),
  text("mode", (a) => a.mode, "l"),
  text("duration", (a) => seconds(duration(a)), "r"),
  text("moved", (a) => bytes(a.moved_bytes) + (a.resumed_bytes ? " + " + bytes(a.resumed_bytes) + " kept" : ""), "r"),
  text("rate", (a) => (a.moved_bytes > 0 && duration(a) > 0 ? bits(a.moved_bytes / duration(a)) : ""), "r"),
  { head: "outcome", kind: "l name reason bare", fill: (td, a) => {
    write(td, a.fault ? a.fault + (a.reason ? ": " + a.reason : "") : (a.existed ? "already present" : "arrived") + (a.verified ? ", checksum " + (a.adler32 ?? "") + " read back" : ", not verified"));
    td.className = "l name reason bare " + (a.fault ? "fail" : "ok");
  } },
];

/** openFile opens the dialog of a file of a request. */
export function openFile(app: AppContext, request: number, i: Item): void {
  const facts = el("p", "meta", [stateOf(i.state).label, bytes(i.size_bytes), i.adler32 ? "adler32 " + i.adler32 : "no checksum", "item " + i.id].join(" · "));
  const remark = el("p", "name", i.reason ?? "");
  const reasons = el("ul", "reasons");
  const rows = new DataTable<Attempt>("Attempts", (a) => String(a.epoch), columns);
  const none = el("p", "meta", "Loading …");
  rows.root.hidden = true;
  openDialog(i.name, facts, remark, reasons, el("h3", "", "Attempts"), rows.root, none);
  attempts(request, i.id).then((list) => {
    rows.show(list);
    write(none, list.length ? "" : "No attempts yet.");
  }, (err) => write(none, app.handleError(err)));
  if (["queued", "no source", "leased"].includes(i.state)) {
    explain(request, i.name).then((e) => reasons.replaceChildren(...(e.reasons ?? []).map((x) => el("li", "name", x.text))), (err) => write(remark, app.handleError(err)));
  }
}
