// The script of the coordinator's page: it signs the user in, shows the view of the
// address and forwards events to this view.
import { el, write } from "./dom";
import { EventStream } from "./event_stream";
import { fetchJSON, type TransferEvent, type Submission, type User } from "./transfer_api";
import { Datasets, OneDataset } from "./transfer_datasets";
import type { AppContext, View } from "./transfer_context";
import { reconnected, sentence, status } from "./transfer_poll";
import { newRequest } from "./transfer_form";
import { Links } from "./transfer_links";
import { Overview } from "./transfer_overview";
import { SiteStore } from "./transfer_store";
import { OneRequest } from "./transfer_request";
import { Requests } from "./transfer_requests";
import { signIn } from "./transfer_signin";
import { OneSite } from "./transfer_site";
import { Sites } from "./transfer_sites";
import "./theme.css";
import "./live.css";
import "./transfer.css";

const navLinks = [["#/", "Overview"], ["#/requests", "Requests"], ["#/datasets", "Datasets"], ["#/sites", "Sites"], ["#/links", "Links"]] as const;

/** hiddenTimeout is the time after which a hidden page closes its connection, in milliseconds: all tabs of a browser share six connections to a server. */
const hiddenTimeout = 5000;

/** unescape decodes a name in an address; it returns invalid input unchanged. */
function unescape(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** App is the page of a user who is signed in. */
class App implements AppContext {
  readonly store: SiteStore;
  private readonly nav = el("nav");
  private readonly wireState = el("p", "wire");
  private readonly notice = el("p", "notice");
  private readonly main = el("main");
  private view: View;
  private notifiedAt = 0;

  constructor(root: HTMLElement, readonly user: User) {
    this.wireState.setAttribute("role", "status");
    this.notice.setAttribute("role", "status");
    this.notice.hidden = true;
    this.nav.setAttribute("aria-label", "Views");
    this.nav.append(...navLinks.map(([to, name]) => Object.assign(el("a", "", name), { href: to })));
    root.replaceChildren(el("header", "top", "", Object.assign(el("a", "brand", "weir"), { href: "#/" }), this.nav, this.wireState, this.account()), this.notice, this.main);
    this.store = new SiteStore(() => this.view.onRefresh(), (err) => this.handleError(err));
    this.view = this.route();
    addEventListener("hashchange", () => this.navigate());
    const stream = new EventStream<TransferEvent>({ message: (e) => this.onEvent(e), state: (text, good) => this.showConnection(text, good) }, (since) => "/api/v1/events?after=" + (since || "0"), hiddenTimeout);
    this.showConnection("connecting", true);
    stream.open(true);
    this.mount();
  }

  private account(): HTMLElement {
    const out = el("button", "button", "Sign out");
    out.type = "button";
    out.hidden = this.user.known === true;
    out.addEventListener("click", () => void fetchJSON("/session/end", {}).then(() => location.reload(), (err) => this.notify(sentence(err), false)));
    const make = el("button", "button strong-button", "New request");
    make.type = "button";
    make.id = "new";
    make.hidden = !this.hasRole("submit");
    make.addEventListener("click", () => this.submit({}));
    const roles = (this.user.roles ?? []).map((r) => r.replace(/^weir\./, "")).join(", ");
    const name = el("span", "meta name who", this.user.name);
    name.title = "roles: " + roles;
    return el("div", "account", "", make, name, out);
  }

  hasRole(role: "submit" | "approve"): boolean {
    const roles = this.user.roles ?? [];
    return roles.includes("weir." + role) || roles.includes("weir.admin");
  }

  notify(text: string, good = true): void {
    write(this.notice, text);
    this.notice.className = good ? "notice ok" : "notice fail";
    this.notice.hidden = false;
    const at = (this.notifiedAt = Date.now());
    setTimeout(() => {
      if (this.notifiedAt === at) this.notice.hidden = true;
    }, 8000);
  }

  submit(initial: Partial<Submission>): void {
    newRequest(this, initial, (r) => {
      this.notify("Request " + r.id + (r.status === "awaiting approval" ? " awaits approval." : " was created."));
      location.hash = "#/requests/" + r.id;
    });
  }

  handleError(err: unknown): string {
    if (status(err) === 401) location.reload(); // the token has expired: sign in again
    else if (!(err instanceof Error) || status(err) === 0) this.showConnection("coordinator unreachable, retrying", false);
    return sentence(err);
  }

  private onEvent(e: TransferEvent): void {
    if (!e.id) return; // a heartbeat
    this.store.addEvent(e);
    this.view.onEvent(e);
  }

  private showConnection(text: string, good: boolean): void {
    if (good && this.wireState.classList.contains("lost")) document.dispatchEvent(new Event(reconnected));
    write(this.wireState, (good ? "● " : "○ ") + text);
    this.wireState.classList.toggle("lost", !good);
  }

  private route(): View {
    const [path = "", search = ""] = location.hash.replace(/^#/, "").split("?", 2);
    const q = new URLSearchParams(search);
    const id = /^\/requests\/(\d+)$/.exec(path)?.[1];
    if (id) return new OneRequest(this, Number(id), q);
    if (path.startsWith("/sites/")) return new OneSite(this, unescape(path.slice("/sites/".length)));
    switch (path) {
      case "/requests": return new Requests(this, q);
      case "/datasets": return new Datasets(this);
      case "/dataset": return new OneDataset(this, q.get("name") ?? "");
      case "/sites": return new Sites(this);
      case "/links": return new Links(this);
      default: return new Overview(this);
    }
  }

  private navigate(): void {
    this.view.close();
    this.view = this.route();
    this.mount();
    scrollTo(0, 0);
  }

  private mount(): void {
    this.main.replaceChildren(this.view.root);
    this.view.onRefresh();
    document.title = this.view.title + " · weir";
    const here = location.hash.replace(/[?].*/, "") || "#/";
    for (const a of this.nav.querySelectorAll("a")) {
      const to = a.getAttribute("href") ?? "";
      if (to === "#/" ? here === to : here.startsWith(to.replace(/s$/, ""))) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
  }
}

const root = document.getElementById("transfer");
if (root) void signIn(root).then((user) => new App(root, user));
