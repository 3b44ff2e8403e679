// The figures of a report: JSON, compressed with gzip and encoded in base64.
import type { Figure, Line, Value } from "./figure";

/** PackedLine refers to a shared column of x by its index. */
type PackedLine = Omit<Line, "x"> & { x: number };
type PackedFigure = Omit<Figure, "lines"> & { lines?: PackedLine[] };

interface Packed {
  x: Value[][];
  figures: (PackedFigure | null)[];
}

/** canUnpack reports whether the browser can decompress gzip; browsers before 2023 cannot. */
export const canUnpack = (): boolean => "DecompressionStream" in window;

/** unpack decodes the figures of the page; null stands for a figure that cannot be drawn. */
export async function unpack(text: string): Promise<(Figure | null)[]> {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const json = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  const all = JSON.parse(json) as Packed;
  return all.figures.map((f) => f && { ...f, lines: (f.lines ?? []).map((l) => ({ ...l, x: all.x[l.x] ?? [] })) });
}
