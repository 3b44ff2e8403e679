package report

import (
	"fmt"

	"weir/figure"
	"weir/internal/unit"
)

// course says how a line goes, for those who do not see it: where it begins,
// its highest and lowest place with their times, and where it ends.
func course(points []figure.Point, text func(float64) string) string {
	n := len(points)
	if n == 0 {
		return "Nothing is known."
	}
	high, low := 0, 0
	for i := range points {
		if points[i].Y > points[high].Y {
			high = i
		}
		if points[i].Y < points[low].Y {
			low = i
		}
	}
	if text(points[high].Y) == text(points[low].Y) {
		return fmt.Sprintf("It is %s all the time.", text(points[0].Y))
	}
	part := max(1, n/20)
	first, last := meanOf(points[:part]), meanOf(points[n-part:])
	place := func(i int) string { return fmt.Sprintf("%s at %s", text(points[i].Y), unit.Seconds(points[i].X)) }
	return fmt.Sprintf("It begins near %s, is highest with %s, lowest with %s, and ends near %s.", text(first), place(high), place(low), text(last))
}

func meanOf(points []figure.Point) float64 {
	sum := 0.0
	for i := range points {
		sum += points[i].Y
	}
	return sum / float64(len(points))
}

// bursts says when a line is above zero, and when it is highest.
func bursts(points []figure.Point) string {
	first, last, high, stretches := -1, -1, 0, 0
	for i := range points {
		if points[i].Y <= 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		if last < 0 || last < i-1 {
			stretches++
		}
		last = i
		if points[i].Y > points[high].Y {
			high = i
		}
	}
	switch {
	case first < 0:
		return "none"
	case first == last:
		return fmt.Sprintf("only at %s, %s/s", unit.Seconds(points[first].X), unit.Count(points[high].Y))
	}
	text := fmt.Sprintf("from %s to %s after the start", unit.Seconds(points[first].X), unit.Seconds(points[last].X))
	if stretches > 1 {
		text += fmt.Sprintf(" in %d stretches", stretches)
	}
	return text + fmt.Sprintf(", at most %s/s at %s", unit.Count(points[high].Y), unit.Seconds(points[high].X))
}
