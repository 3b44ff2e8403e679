// The actions on a request and the roles that permit them.
import { decide, type Request } from "./transfer_api";
import type { AppContext } from "./transfer_context";
import { confirmAction } from "./transfer_dialog";
import type { ButtonSpec } from "./transfer_table";
import { arrived, ended, files, size } from "./transfer_text";

interface RequestAction {
  label: string;
  text(r: Request): string;
  done: string;
  danger?: boolean;
  strong?: boolean;
}

const actions = {
  approve: { label: "Approve", done: "was approved", strong: true, text: (r) => "The request has " + size(r) + ". Its transfers start when capacity is available." },
  reject: { label: "Reject", done: "was rejected", danger: true, text: () => "The request ends now. No file is changed." },
  cancel: { label: "Cancel", done: "was cancelled", danger: true, text: (r) => "Running transfers are aborted. " + (arrived(r.count) ? "The destination keeps " + files(arrived(r.count)) + "." : "No file has arrived yet.") },
  retry: { label: "Retry", done: "was restarted", strong: true, text: (r) => files(r.count.failed + r.count.cancelled + r.count.no_source) + " that did not arrive " + (r.count.failed + r.count.cancelled + r.count.no_source === 1 ? "is" : "are") + " retried; arrived files are unchanged." },
} satisfies Record<string, RequestAction>;

/** permitted returns the actions that the request's status and the user's roles permit. */
function permitted(app: AppContext, r: Request): (keyof typeof actions)[] {
  const names: (keyof typeof actions)[] = [];
  if (r.status === "awaiting approval" && app.hasRole("approve")) names.push("approve", "reject");
  if (app.hasRole("approve") || app.hasRole("submit") && r.by === app.user.name) {
    if (!ended(r.status)) names.push("cancel");
    else if (r.status !== "completed" && r.status !== "rejected") names.push("retry");
  }
  return names;
}

/** requestActions returns the buttons of a request; each opens a confirmation dialog. */
export function requestActions(app: AppContext, r: Request, after: () => void): ButtonSpec[] {
  return permitted(app, r).map((name): ButtonSpec => {
    const v: RequestAction = actions[name];
    return {
      label: v.label, title: v.label + " request " + r.id, ...(v.strong ? { strong: true } : {}),
      onClick: () => confirmAction({
        title: v.label + " request " + r.id + "?", text: r.dataset + " to " + r.to + ". " + v.text(r), confirmLabel: v.label + " it", ...(v.danger ? { danger: true } : {}),
        onConfirm: async (reason) => {
          await decide(r.id, name, reason);
          app.notify("Request " + r.id + " " + v.done + ".");
          after();
        },
      }),
    };
  });
}
