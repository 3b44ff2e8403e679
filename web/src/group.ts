// Charts with the same x axis point at the same place and show the same stretch.
import type { Figure } from "./figure";

/** A Member is a chart that follows what happens to others. */
export interface Member {
  point(x: number | null): void;
  stretch(range: [number, number] | null): void;
}

/** A Group is the charts that go together. */
export class Group {
  private readonly members = new Set<Member>();
  range: [number, number] | null = null; // what all of them show; null: everything

  join(m: Member): () => void {
    this.members.add(m);
    return () => void this.members.delete(m);
  }

  /** point tells all others that one is pointed at x. */
  point(from: Member, x: number | null): void {
    for (const m of this.members) if (m !== from) m.point(x);
  }

  /** stretch tells all others that one shows a stretch of x. */
  stretch(from: Member, range: [number, number] | null): void {
    this.range = range;
    for (const m of this.members) if (m !== from) m.stretch(range);
  }
}

/** Groups hands out one group for each x axis. */
export class Groups {
  private readonly all = new Map<string, Group>();

  of(f: Figure): Group {
    const key = JSON.stringify([f.x.label, f.x.unit, f.x.base ?? 0]);
    let g = this.all.get(key);
    if (!g) this.all.set(key, (g = new Group()));
    return g;
  }
}
