// The page's colors of theme.css, for drawing on a canvas.

export interface Colors {
  lines: string[];
  ink: string;
  soft: string;
  grid: string;
  zone: string;
  card: string;
  fail: string;
  dark: boolean;
}

/** colors returns the current colors. */
export function colors(): Colors {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue("--" + name).trim() || "#888";
  return {
    lines: [0, 1, 2, 3, 4, 5].map((i) => get("c" + i)),
    ink: get("ink"), soft: get("soft"), grid: get("grid"), zone: get("zone"), card: get("card"), fail: get("fail"),
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
  };
}

/** onScheme calls changed after a change to dark or light mode; the returned function removes the listener. */
export function onScheme(changed: () => void): () => void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", changed);
  return () => dark.removeEventListener("change", changed);
}
