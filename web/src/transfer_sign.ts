// Signing in: with the code of a link that was printed, or a token.
import { el, write } from "./dom";
import { ask, type Who } from "./transfer_api";
import { code, sentence, status } from "./transfer_poll";
import { command } from "./transfer_words";

/** signIn returns who is signed in; until somebody is, it asks in root. */
export async function signIn(root: HTMLElement): Promise<Who> {
  const link = /^#code=([A-Za-z0-9_-]+)$/.exec(location.hash)?.[1];
  let problem = "";
  if (link) {
    history.replaceState(null, "", location.pathname); // it stays in no history
    try {
      return await ask<Who>("/session", { code: link });
    } catch (err) {
      problem = sentence(err);
    }
  }
  for (;;) {
    try {
      return await ask<Who>("/session");
    } catch (err) {
      if (status(err) === 401) return form(root, problem || (code(err) === "no_session" ? "" : sentence(err)));
      root.replaceChildren(el("main", "sign", "", el("h1", "", "weir transfers"), el("p", "fail", sentence(err) + " Trying again …")));
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}

/** form asks for a token. */
function form(root: HTMLElement, before: string): Promise<Who> {
  const token = el("input");
  token.type = "password";
  token.required = true;
  token.autocomplete = "off";
  token.spellcheck = false;
  const problem = el("p", "fail", before);
  problem.setAttribute("role", "alert");
  const go = el("button", "button strong-button", "Sign in");
  go.type = "submit";
  const f = el("form", "form", "", el("label", "", "Token", token), problem, el("div", "buttons", "", go));
  root.replaceChildren(el("main", "sign", "", el("h1", "", "weir transfers"), f,
    el("p", "", "On the coordinator's machine this prints a link that signs in, once:"), command("weir coordinator link"),
    el("p", "", "and this a token for somebody else, to be pasted here:"), command("weir coordinator token --name alice --role submit")));
  document.title = "Sign in · weir";
  token.focus();
  return new Promise((done) => {
    f.addEventListener("submit", (e) => {
      e.preventDefault();
      go.disabled = true;
      write(problem, "");
      ask<Who>("/session", { token: token.value }).then(done, (err) => {
        write(problem, sentence(err));
        go.disabled = false;
        token.select();
      });
    });
  });
}
