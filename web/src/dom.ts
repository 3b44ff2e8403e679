// Small helpers for elements. External input is set as text only.

/** el creates an element with a class, a text and children. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, name = "", text = "", ...children: Node[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text) e.textContent = text;
  e.append(...children);
  return e;
}

/** write sets a text only if it has changed, so that screen readers announce it once. */
export function write(e: Element, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}
