// The page's colors, which theme.css names, for what is painted.

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

/** colors reads them as they are now. */
export function colors(): Colors {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue("--" + name).trim() || "#888";
  return {
    lines: [0, 1, 2, 3, 4, 5].map((i) => get("c" + i)),
    ink: get("ink"), soft: get("soft"), grid: get("grid"), zone: get("zone"), card: get("card"), fail: get("fail"),
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
  };
}

/** onScheme calls back when the page turns dark or light; the function that it returns ends that. */
export function onScheme(changed: () => void): () => void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", changed);
  return () => dark.removeEventListener("change", changed);
}
