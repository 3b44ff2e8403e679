// The figures that a report holds: JSON, packed by gzip, in base64.
import type { Figure, Line, Value } from "./figure";

/** A PackedLine names its column of x. */
type PackedLine = Omit<Line, "x"> & { x: number };
type PackedFigure = Omit<Figure, "lines"> & { lines?: PackedLine[] };

interface Packed {
  x: Value[][];
  figures: (PackedFigure | null)[];
}

/** canUnpack is false for browsers from before 2023. */
export const canUnpack = (): boolean => "DecompressionStream" in window;

/** unpack reads what the page holds; null stands for a figure that cannot be drawn. */
export async function unpack(text: string): Promise<(Figure | null)[]> {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const json = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  const all = JSON.parse(json) as Packed;
  return all.figures.map((f) => f && { ...f, lines: (f.lines ?? []).map((l) => ({ ...l, x: all.x[l.x] ?? [] })) });
}
