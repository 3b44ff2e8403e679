package main

import (
	"fmt"
	"slices"
	"time"

	"weir/internal/screen"
	"weir/internal/unit"
)

// draw returns the rows that move.
func (l *live) draw(columns int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	wide := columns - 3
	if l.making.what != "" || !l.loaded {
		return append(l.crew(), l.preparing(now).Row(wide, l.look))
	}
	rows := l.crew()
	if l.second.Seconds > 0 {
		shown := l.liveColumns(columns)
		if head := header(shown); l.head != head {
			rows = append(rows, l.look.Paint(screen.Faint, head))
		}
		rows = append(rows, l.row(shown, &l.second))
		if worse := l.worse(); worse != "" {
			rows = append(rows, " "+l.look.Paint(screen.Red, worse))
		}
	}
	if spark := l.spark(wide); spark != "" {
		rows = append(rows, spark)
	}
	if l.known != "" {
		rows = append(rows, " "+l.known)
	}
	return append(rows, l.course.progress(now).Row(wide, l.look))
}

// crew is the row that says who is there.
func (l *live) crew() []string {
	if l.workers == nil {
		return nil
	}
	return []string{" " + l.workers()}
}

// spark draws the throughput of the last seconds.
func (l *live) spark(columns int) string {
	if !l.look.Blocks || len(l.history) < 2 {
		return ""
	}
	const head, tail = " throughput ", " last %d s, up to %s"
	room := columns - len(head) - len(fmt.Sprintf(tail, mostHistory, "99.9 Gbit/s"))
	if room < 5 {
		return ""
	}
	values := l.history[max(len(l.history)-max(room, 1), 0):]
	highest := slices.Max(values)
	if highest == 0 {
		return "" // nothing is moved: a run of operations without payload
	}
	return head + l.look.Paint(screen.Cyan, screen.Spark(values, len(values))) + fmt.Sprintf(tail, len(values), unit.Bits(highest))
}

// preparing is how far the preparation is.
func (l *live) preparing(now time.Time) screen.Progress {
	p := l.making.progress(now)
	if p.Where == "" {
		p.Where = "preparing"
	}
	p.Where = l.course.where() + p.Where
	return p
}
