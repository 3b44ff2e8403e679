// One file of a request, in front of the page: its attempts, and why it stands
// where it stands.
import { el, write } from "./dom";
import { attempts, explain, type Attempt, type Item } from "./transfer_api";
import type { Desk } from "./transfer_desk";
import { open } from "./transfer_dialog";
import { Rows, text, type Column } from "./transfer_rows";
import { bits, bytes, seconds, moment, stateOf, when } from "./transfer_words";

const lasted = (a: Attempt): number => Math.max(0, moment(a.end) - moment(a.begin)) / 1000;

const columns: Column<Attempt>[] = [
  text("no.", (a) => String(a.epoch), "r"),
  text("began", (a) => when(a.begin), "r"),
  text("from", (a) => a.source, "l name"),
  text("by", (a) => a.mode, "l"),
  text("took", (a) => seconds(lasted(a)), "r"),
  text("moved", (a) => bytes(a.moved_bytes) + (a.resumed_bytes ? " + " + bytes(a.resumed_bytes) + " kept" : ""), "r"),
  text("rate", (a) => (a.moved_bytes > 0 && lasted(a) > 0 ? bits(a.moved_bytes / lasted(a)) : ""), "r"),
  { head: "outcome", kind: "l name reason bare", fill: (td, a) => {
    write(td, a.fault ? a.fault + (a.reason ? ": " + a.reason : "") : (a.existed ? "was there already" : "arrived") + (a.verified ? ", checksum " + (a.adler32 ?? "") + " read back" : ", not verified"));
    td.className = "l name reason bare " + (a.fault ? "fail" : "ok");
  } },
];

/** openFile shows a file of a request. */
export function openFile(desk: Desk, request: number, i: Item): void {
  const facts = el("p", "meta", [stateOf(i.state).label, bytes(i.size_bytes), i.adler32 ? "adler32 " + i.adler32 : "no checksum is known", "item " + i.id].join(" · "));
  const said = el("p", "name", i.reason ?? "");
  const why = el("ul", "reasons");
  const rows = new Rows<Attempt>("Attempts", (a) => String(a.epoch), columns);
  const none = el("p", "meta", "Asking …");
  rows.root.hidden = true;
  open(i.name, facts, said, why, el("h3", "", "Attempts"), rows.root, none);
  attempts(request, i.id).then((list) => {
    rows.show(list);
    write(none, list.length ? "" : "There was none yet.");
  }, (err) => write(none, desk.lost(err)));
  if (["queued", "no source", "leased"].includes(i.state)) {
    explain(request, i.name).then((e) => why.replaceChildren(...(e.reasons ?? []).map((x) => el("li", "name", x.text))), (err) => write(said, desk.lost(err)));
  }
}
