// The table of contents marks the visible section.

/** follow marks the current section until the page is closed. */
export function follow(): void {
  const links = new Map<string, HTMLAnchorElement>();
  for (const a of document.querySelectorAll<HTMLAnchorElement>("nav a")) links.set(a.hash.slice(1), a);
  const inSight = new Set<string>();
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const id = e.target.querySelector("h2")?.id ?? "";
      if (e.isIntersecting) inSight.add(id);
      else inSight.delete(id);
    }
    const now = [...links.keys()].find((id) => inSight.has(id));
    for (const [id, a] of links) {
      if (id === now) a.setAttribute("aria-current", "location");
      else a.removeAttribute("aria-current");
    }
  }, { rootMargin: "-10% 0px -60% 0px" });
  for (const s of document.querySelectorAll("main > section")) seen.observe(s);
}
