// What can be done with a request, by those who may.
import { bytes } from "./format";
import { decide, type Request } from "./transfer_api";
import type { Desk } from "./transfer_desk";
import { ask } from "./transfer_dialog";
import type { Deed } from "./transfer_rows";
import { arrived, ended, files } from "./transfer_words";

interface Verb {
  label: string;
  text(r: Request): string;
  said: string;
  danger?: boolean;
  strong?: boolean;
}

const verbs = {
  approve: { label: "Approve", said: "is approved", strong: true, text: (r) => (r.count.files ? files(r.count.files) + ", " + bytes(r.count.bytes) + ", go" : "It goes") + " to " + r.to + " as soon as there is room." },
  reject: { label: "Reject", said: "is rejected", danger: true, text: () => "It ends now. No file is touched." },
  cancel: { label: "Cancel", said: "is cancelled", danger: true, text: (r) => "Copies that run are broken off. " + (arrived(r.count) ? files(arrived(r.count)) + " that arrived " + (arrived(r.count) === 1 ? "stays." : "stay.") : "Nothing has arrived yet.") },
  retry: { label: "Retry", said: "goes on", strong: true, text: (r) => files(r.count.failed + r.count.cancelled + r.count.no_source) + " that did not arrive " + (r.count.failed + r.count.cancelled + r.count.no_source === 1 ? "is" : "are") + " tried again; those that arrived are left as they are." },
} satisfies Record<string, Verb>;

/** possible are the verbs that a request's status and the user's roles leave. */
function possible(desk: Desk, r: Request): (keyof typeof verbs)[] {
  const all: (keyof typeof verbs)[] = [];
  if (r.status === "awaiting approval" && desk.may("approve")) all.push("approve", "reject");
  if (desk.may("approve") || desk.may("submit") && r.by === desk.who.name) {
    if (!ended(r.status)) all.push("cancel");
    else if (r.status !== "completed" && r.status !== "rejected") all.push("retry");
  }
  return all;
}

/** deedsOf are the buttons of a request; each asks first. */
export function deedsOf(desk: Desk, r: Request, after: () => void): Deed[] {
  return possible(desk, r).map((name): Deed => {
    const v: Verb = verbs[name];
    return {
      label: v.label, title: v.label + " request " + r.id, ...(v.strong ? { strong: true } : {}),
      done: () => ask({
        title: v.label + " request " + r.id + "?", text: r.dataset + " to " + r.to + ". " + v.text(r), yes: v.label + " it", ...(v.danger ? { danger: true } : {}),
        done: async (reason) => {
          await decide(r.id, name, reason);
          desk.tell("Request " + r.id + " " + v.said + ".");
          after();
        },
      }),
    };
  });
}
