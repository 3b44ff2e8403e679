// A plot as plain data, the JSON output of package figure. Values are in base units
// (bytes per second, seconds, shares of 1); an axis has the unit for display.

export type Value = number | null; // null: unknown

export interface Axis {
  label: string; // with unit
  unit: string;
  factor: number; // displayed value = value * factor, in unit
  duration?: boolean; // seconds, shown in a unit that suits each value
  min: number;
  max: number;
  base?: number; // above 1: logarithmic
  ticks: number[] | null;
}

export interface Line {
  name: string;
  color: number; // index of the palette, from 0 to 5
  dash?: boolean;
  dots?: boolean;
  loose?: boolean; // the dots are not joined
  x: Value[];
  y: Value[];
  low?: Value[]; // interval: a bar at a dot, a band along a line without dots
  high?: Value[];
}

export interface Column {
  from: number;
  to: number;
  y: number;
}

export interface Zone {
  from: number;
  to: number;
  name: string;
  outage?: boolean; // drawn as a warning
}

export interface Mark {
  x: number;
  name: string;
  low?: number | null; // confidence interval of x
  high?: number | null;
}

export interface Heat {
  x: number[]; // ascending edges, one more than rows
  y: number[]; // ascending edges, one more than each row has
  rows: number[][];
  what: string; // plural noun of the counted things
}

export interface Figure {
  id: string;
  title: string;
  desc: string;
  stamp?: string; // validity of the run
  x: Axis;
  y: Axis;
  lines?: Line[] | null;
  columns?: Column[] | null;
  zones?: Zone[] | null;
  marks?: Mark[] | null;
  heat?: Heat | null;
}
