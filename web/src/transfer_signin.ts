// Sign-in with the code of a printed link, or with a token.
import { el, write } from "./dom";
import { fetchJSON, type User } from "./transfer_api";
import { code, sentence, status } from "./transfer_poll";
import { command } from "./transfer_text";

/** signIn returns the signed-in user; without a session it shows the sign-in form in root. */
export async function signIn(root: HTMLElement): Promise<User> {
  const link = /^#code=([A-Za-z0-9_-]+)$/.exec(location.hash)?.[1];
  let problem = "";
  if (link) {
    history.replaceState(null, "", location.pathname); // keep the code out of the browser's history
    try {
      return await fetchJSON<User>("/session", { code: link });
    } catch (err) {
      problem = sentence(err);
    }
  }
  for (;;) {
    try {
      return await fetchJSON<User>("/session");
    } catch (err) {
      if (status(err) === 401) return form(root, problem || (code(err) === "no_session" ? "" : sentence(err)));
      root.replaceChildren(el("main", "sign", "", el("h1", "", "weir transfers"), el("p", "fail", sentence(err) + " Retrying …")));
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}

/** form shows a form for a token and returns the user after sign-in. */
function form(root: HTMLElement, before: string): Promise<User> {
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
    el("p", "", "This command on the coordinator's machine prints a one-time sign-in link:"), command("weir coordinator link"),
    el("p", "", "This command prints a token for another user, to be pasted here:"), command("weir coordinator token --name alice --role submit")));
  document.title = "Sign in · weir";
  token.focus();
  return new Promise((done) => {
    f.addEventListener("submit", (e) => {
      e.preventDefault();
      go.disabled = true;
      write(problem, "");
      fetchJSON<User>("/session", { token: token.value }).then(done, (err) => {
        write(problem, sentence(err));
        go.disabled = false;
        token.select();
      });
    });
  });
}
