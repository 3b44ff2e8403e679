// Charts with the same x axis share the position of the cursor and the zoom.
import type { Figure } from "./figure";

/** Member is a chart that follows the cursor and the zoom of its group. */
export interface Member {
  point(x: number | null): void;
  zoomTo(range: [number, number] | null): void;
}

/** Group is a set of charts with common cursor and zoom. */
export class Group {
  private readonly members = new Set<Member>();
  range: [number, number] | null = null; // the visible range of x of all charts; null: everything

  join(m: Member): () => void {
    this.members.add(m);
    return () => void this.members.delete(m);
  }

  /** point moves the cursor of all other members to x. */
  point(from: Member, x: number | null): void {
    for (const m of this.members) if (m !== from) m.point(x);
  }

  /** zoomTo shows a range of x in all other members. */
  zoomTo(from: Member, range: [number, number] | null): void {
    this.range = range;
    for (const m of this.members) if (m !== from) m.zoomTo(range);
  }
}

/** Groups provides a group for each x axis. */
export class Groups {
  private readonly all = new Map<string, Group>();

  of(f: Figure): Group {
    const key = JSON.stringify([f.x.label, f.x.unit, f.x.base ?? 0]);
    let g = this.all.get(key);
    if (!g) this.all.set(key, (g = new Group()));
    return g;
  }
}
