package report

import (
	"cmp"
	"slices"

	"weir/analysis"
)

// inOrder returns f with its steps in the order of their loads if they were held
// in any other order than up, or up and down again: a search goes to and fro, and
// nobody can read a table, or a line, that does.
func inOrder(f *analysis.Findings) *analysis.Findings {
	_, of := load(f)
	turns, down := 0, false
	for i := 1; i < len(f.Curve); i++ {
		before, now := of(&f.Curve[i-1]), of(&f.Curve[i])
		if now != before && now < before != down {
			turns, down = turns+1, now < before
		}
	}
	if turns < 2 {
		return f
	}
	sorted := *f
	sorted.Curve = slices.Clone(f.Curve)
	slices.SortStableFunc(sorted.Curve, func(a, b analysis.Step) int { return cmp.Compare(of(&a), of(&b)) })
	return &sorted
}
