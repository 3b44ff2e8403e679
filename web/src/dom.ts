// Small helpers for elements. Whatever comes from elsewhere is set as text.

/** el makes an element with a class, a text and children. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, name = "", text = "", ...children: Node[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text) e.textContent = text;
  e.append(...children);
  return e;
}

/** write sets a text only if it is another one: who listens to the page hears it once. */
export function write(e: Element, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}
