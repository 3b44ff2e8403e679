package report

import (
	"testing"

	"weir/loadtest/analysis"
)

func TestInOrder(t *testing.T) {
	for name, c := range map[string]struct{ held, want []int }{
		"up":          {[]int{1, 2, 4}, []int{1, 2, 4}},
		"up and down": {[]int{1, 2, 4, 2, 1}, []int{1, 2, 4, 2, 1}},
		"down":        {[]int{4, 2, 1}, []int{4, 2, 1}},
		"a zigzag":    {[]int{1, 2, 4, 8, 3, 5, 3}, []int{1, 2, 3, 3, 4, 5, 8}},
		"none":        {nil, nil},
	} {
		f := &analysis.Findings{}
		for i, n := range c.held {
			f.Curve = append(f.Curve, analysis.Step{Step: i + 1, Clients: n})
		}
		got := inOrder(f)
		for i, n := range c.want {
			if got.Curve[i].Clients != n {
				t.Errorf("%s: step %d has %d clients, want %d", name, i+1, got.Curve[i].Clients, n)
			}
			if f.Curve[i].Clients != c.held[i] {
				t.Errorf("%s: the findings were changed", name)
			}
		}
	}
}
