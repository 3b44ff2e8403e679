// A plot as plain data: what package figure writes as JSON. Values are in base
// units (bytes per second, seconds, shares of 1); an axis says how they are shown.

export type Value = number | null; // null: not known

export interface Axis {
  label: string; // with unit
  unit: string;
  factor: number; // shown value = value * factor, in unit
  duration?: boolean; // seconds, each shown in the unit that suits it
  min: number;
  max: number;
  base?: number; // above 1: logarithmic
  ticks: number[] | null;
}

export interface Line {
  name: string;
  color: number; // of the palette, from 0 to 5
  dash?: boolean;
  dots?: boolean;
  loose?: boolean; // its dots are not joined
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
  low?: number | null; // the interval that it lies in
  high?: number | null;
}

export interface Heat {
  x: number[]; // ascending edges, one more than rows
  y: number[]; // ascending edges, one more than each row has
  rows: number[][];
  what: string; // what is counted
}

export interface Figure {
  id: string;
  title: string;
  desc: string;
  stamp?: string; // whether the run can be believed
  x: Axis;
  y: Axis;
  lines?: Line[] | null;
  columns?: Column[] | null;
  zones?: Zone[] | null;
  marks?: Mark[] | null;
  heat?: Heat | null;
}
