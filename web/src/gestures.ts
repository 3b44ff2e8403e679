// Mouse and touch gestures on a chart. A vertical swipe scrolls the page, as usual
// (touch-action: pan-y), a horizontal swipe moves the cursor, and two fingers pinch
// to zoom.

export interface Gestures {
  /** point moves the cursor to the position of the mouse or finger, in CSS pixels of the plot. */
  point(left: number, top: number): void;
  leave(): void;
  /** pinch zooms so that the content at the pixels from moves to the pixels to. */
  pinch(from: [number, number], to: [number, number]): void;
  reset(): void;
}

/** listen registers the gestures on the plot. The listeners are removed with the element. */
export function listen(over: HTMLElement, g: Gestures): void {
  const fingers = new Map<number, number>(); // pointer id to distance from the left
  const left = (e: PointerEvent): number => e.clientX - over.getBoundingClientRect().left;
  const top = (e: PointerEvent): number => e.clientY - over.getBoundingClientRect().top;

  over.addEventListener("pointerdown", (e) => {
    if (e.pointerType !== "touch") return;
    fingers.set(e.pointerId, left(e));
    g.point(left(e), top(e));
  });
  over.addEventListener("pointermove", (e) => {
    if (e.pointerType !== "touch") return g.point(left(e), top(e));
    const last = fingers.get(e.pointerId);
    if (last === undefined) return;
    const other = [...fingers].find(([id]) => id !== e.pointerId)?.[1];
    fingers.set(e.pointerId, left(e));
    if (other === undefined) return g.point(left(e), top(e));
    const [from, to] = [[last, other], [left(e), other]].map((p) => p.sort((a, b) => a - b) as [number, number]);
    if (from![1] - from![0] > 20 && to![1] - to![0] > 20) g.pinch(from!, to!);
  });
  const lift = (e: PointerEvent): void => void fingers.delete(e.pointerId);
  over.addEventListener("pointerup", lift);
  over.addEventListener("pointercancel", lift);
  over.addEventListener("pointerleave", (e) => {
    lift(e);
    if (e.pointerType !== "touch") g.leave();
  });
  over.addEventListener("dblclick", () => g.reset());
}
