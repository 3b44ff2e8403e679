// Keyboard control of a chart.

export interface Places {
  count: number; // number of cursor positions
  now: number; // index of the cursor; -1: no cursor
  go(i: number): void;
  zoom(factor: number): void;
  reset(): void;
}

/** handleKey performs the action of a key and reports whether the chart uses this key. */
export function handleKey(e: KeyboardEvent, p: Places): boolean {
  if (e.ctrlKey || e.altKey || e.metaKey) return false;
  const step = e.shiftKey ? Math.max(1, Math.round(p.count / 20)) : 1;
  const go = (i: number): void => {
    if (p.count > 0) p.go(Math.max(0, Math.min(p.count - 1, i)));
  };
  switch (e.key) {
    case "ArrowRight":
    case "ArrowUp":
      go(p.now < 0 ? 0 : p.now + step);
      return true;
    case "ArrowLeft":
    case "ArrowDown":
      go(p.now < 0 ? p.count - 1 : p.now - step);
      return true;
    case "Home":
      go(0);
      return true;
    case "End":
      go(p.count - 1);
      return true;
    case "+":
    case "=":
      p.zoom(0.5);
      return true;
    case "-":
      p.zoom(2);
      return true;
    case "Escape":
    case "0":
      p.reset();
      return true;
  }
  return false;
}
