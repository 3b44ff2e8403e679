// The script of the coordinator's page: signs in, shows the view that the address
// names, and tells it what happens.
import { el, write } from "./dom";
import { Wire } from "./live_wire";
import { ask, type Happening, type Submission, type Who } from "./transfer_api";
import { Datasets, OneDataset } from "./transfer_datasets";
import type { Desk, View } from "./transfer_desk";
import { back, sentence, status } from "./transfer_poll";
import { newRequest } from "./transfer_form";
import { Links } from "./transfer_links";
import { Overview } from "./transfer_overview";
import { Pulse } from "./transfer_pulse";
import { OneRequest } from "./transfer_request";
import { Requests } from "./transfer_requests";
import { signIn } from "./transfer_sign";
import { OneSite } from "./transfer_site";
import { Sites } from "./transfer_sites";
import "./theme.css";
import "./live.css";
import "./transfer.css";

const places = [["#/", "Overview"], ["#/requests", "Requests"], ["#/datasets", "Datasets"], ["#/sites", "Sites"], ["#/links", "Links"]] as const;

/** A page that nobody sees lets its connection go after so many milliseconds: a browser has six for each server, for all its tabs. */
const rest = 5000;

/** unescape reads a name in an address. */
function unescape(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** App is the page of somebody who is signed in. */
class App implements Desk {
  readonly pulse: Pulse;
  private readonly nav = el("nav");
  private readonly wireState = el("p", "wire");
  private readonly said = el("p", "said");
  private readonly main = el("main");
  private view: View;
  private toldAt = 0;

  constructor(root: HTMLElement, readonly who: Who) {
    this.wireState.setAttribute("role", "status");
    this.said.setAttribute("role", "status");
    this.said.hidden = true;
    this.nav.setAttribute("aria-label", "Views");
    this.nav.append(...places.map(([to, name]) => Object.assign(el("a", "", name), { href: to })));
    root.replaceChildren(el("header", "top", "", Object.assign(el("a", "brand", "weir"), { href: "#/" }), this.nav, this.wireState, this.account()), this.said, this.main);
    this.pulse = new Pulse(() => this.view.beat(), (err) => this.lost(err));
    this.view = this.choose();
    addEventListener("hashchange", () => this.turn());
    const wire = new Wire<Happening>({ message: (e) => this.happened(e), state: (text, good) => this.connection(text, good) }, (since) => "/api/v1/events?after=" + (since || "0"), rest);
    this.connection("connecting", true);
    wire.open(true);
    this.put();
  }

  private account(): HTMLElement {
    const out = el("button", "button", "Sign out");
    out.type = "button";
    out.hidden = this.who.known === true;
    out.addEventListener("click", () => void ask("/session/end", {}).then(() => location.reload(), (err) => this.tell(sentence(err), false)));
    const make = el("button", "button strong-button", "New request");
    make.type = "button";
    make.id = "new";
    make.hidden = !this.may("submit");
    make.addEventListener("click", () => this.submit({}));
    const roles = (this.who.roles ?? []).map((r) => r.replace(/^weir\./, "")).join(", ");
    const name = el("span", "meta name who", this.who.name);
    name.title = "may: " + roles;
    return el("div", "account", "", make, name, out);
  }

  may(role: "submit" | "approve"): boolean {
    const roles = this.who.roles ?? [];
    return roles.includes("weir." + role) || roles.includes("weir.admin");
  }

  tell(text: string, good = true): void {
    write(this.said, text);
    this.said.className = good ? "said ok" : "said fail";
    this.said.hidden = false;
    const at = (this.toldAt = Date.now());
    setTimeout(() => {
      if (this.toldAt === at) this.said.hidden = true;
    }, 8000);
  }

  submit(of: Partial<Submission>): void {
    newRequest(this, of, (r) => {
      this.tell("Request " + r.id + (r.status === "awaiting approval" ? " waits for approval." : " is written down."));
      location.hash = "#/requests/" + r.id;
    });
  }

  lost(err: unknown): string {
    if (status(err) === 401) location.reload(); // the token is over: sign in again
    else if (!(err instanceof Error) || status(err) === 0) this.connection("the coordinator cannot be reached, trying again", false);
    return sentence(err);
  }

  private happened(e: Happening): void {
    if (!e.id) return; // a beat
    this.pulse.happened(e);
    this.view.happened(e);
  }

  private connection(text: string, good: boolean): void {
    if (good && this.wireState.classList.contains("lost")) document.dispatchEvent(new Event(back));
    write(this.wireState, (good ? "● " : "○ ") + text);
    this.wireState.classList.toggle("lost", !good);
  }

  private choose(): View {
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

  private turn(): void {
    this.view.end();
    this.view = this.choose();
    this.put();
    scrollTo(0, 0);
  }

  private put(): void {
    this.main.replaceChildren(this.view.root);
    this.view.beat();
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
if (root) void signIn(root).then((who) => new App(root, who));
