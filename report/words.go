package report

import (
	"fmt"

	"weir/internal/unit"
	"weir/report/figure"
)

// course says how a line goes, for those who do not see it: where what it shows
// begins, its highest and lowest place with their times, and where it ends.
func course(what string, points []figure.Point, text func(float64) string) string {
	n := len(points)
	if n == 0 {
		return what + " is not known."
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
		return fmt.Sprintf("%s is %s all the time.", what, text(points[0].Y))
	}
	part := max(1, n/20)
	first, last := meanOf(points[:part]), meanOf(points[n-part:])
	place := func(i int) string { return fmt.Sprintf("%s at %s", text(points[i].Y), unit.Seconds(points[i].X)) }
	return fmt.Sprintf("%s begins near %s, is highest with %s, lowest with %s, and ends near %s.", what, text(first), place(high), place(low), text(last))
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

// goes says where a figure goes from the lightest load to the heaviest.
func goes(from, to string) string {
	if from == to {
		return "stays at " + from
	}
	return "goes from " + from + " to " + to
}

// usual says how high something was on average and at most.
func usual(text func(float64) string, mean, most float64) string {
	if text(mean) == text(most) {
		return text(mean) + " all the time"
	}
	return text(mean) + " on average and " + text(most) + " at most"
}
