package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/internal/tags"
)

// A Variant is a scenario with one level of each factor of its matrix, ready to be planned: it has
// no matrix itself and is not repeated.
type Variant struct {
	Levels   []string // names, in the order of the factors
	Scenario *Scenario
}

// Variants returns the combinations of the matrix' levels: the combination with the first level of
// each factor is first, and combinations that differ only in the last factor are adjacent. A
// scenario without a matrix is its only variant. Changes of s after it was read affect only a
// scenario without a matrix.
func (s *Scenario) Variants() []Variant {
	if len(s.Matrix) > 0 {
		return slices.Clone(s.variants)
	}
	one := *s
	one.Repeat = 1
	return []Variant{{Scenario: &one}}
}

// File returns the path of the file that s was read from, "" if s was not read from a file.
func (s *Scenario) File() string { return s.file }

// scenarioKeys returns the keys at the top of a scenario.
func scenarioKeys() []string { return tags.Names(reflect.TypeFor[Scenario]()) }

// variants makes a scenario of each combination of m's levels and checks it. It returns the first
// scenario, whose field variants contains all of them.
func (t *tree) variants(root *document.Node, m Matrix, s *Scenario) *Scenario {
	var all []Variant
	found := &gathered{matrix: m}
	for combination := range m.Variants() {
		sub := newTree(t.File)
		changed, base := sub.Copy(root), *s
		levels := m.levels(combination)
		v := Variant{Scenario: &base}
		for i, l := range levels {
			v.Levels = append(v.Levels, m[i].Levels[l].Name)
			for _, set := range m[i].Levels[l].set {
				sub.Insert(changed, strings.Split(set.path, "."), sub.Copy(set.value), set.at)
			}
		}
		sub.decode(changed, &base)
		found.add(sub.Mistakes, levels)
		all = append(all, v)
	}
	t.Mistakes = append(t.Mistakes, found.mistakes()...)
	first := *all[0].Scenario
	first.Matrix, first.variants = m, all
	if n := len(all) * first.Repeat; n > maxRuns && len(t.Mistakes) == 0 {
		at := all[0].Scenario.where["repeat"]
		t.Say(at, "repeat: %d combinations, %d times each, are %d runs; use at most %d", len(all), first.Repeat, n, maxRuns)
	}
	for i := range all {
		all[i].Scenario.Repeat = 1
	}
	return &first
}

// levels returns the index of each factor's level in a combination: the last factor changes
// fastest.
func (m Matrix) levels(combination int) []int {
	out := make([]int, len(m))
	for i := len(m) - 1; i >= 0; i-- {
		n := len(m[i].Levels)
		out[i], combination = combination%n, combination/n
	}
	return out
}

// gathered collects the mistakes of all combinations, each mistake once.
type gathered struct {
	matrix Matrix
	seen   []*seenIn
}

// seenIn is a mistake and the combinations in which it occurs.
type seenIn struct {
	*document.Mistake
	in [][]int // level numbers
}

func (g *gathered) add(ms document.Mistakes, levels []int) {
	for _, m := range ms {
		i := slices.IndexFunc(g.seen, func(s *seenIn) bool { return *s.Mistake == *m })
		if i < 0 {
			i = len(g.seen)
			g.seen = append(g.seen, &seenIn{Mistake: m})
		}
		g.seen[i].in = append(g.seen[i].in, levels)
	}
}

// mistakes returns the mistakes of the scenario and of single levels. If these have no mistakes, it
// returns the mistakes of combinations and names the combinations.
func (g *gathered) mistakes() document.Mistakes {
	var single, combined document.Mistakes
	for _, s := range g.seen {
		levels, alone := g.cause(s)
		if alone {
			single = append(single, s.Mistake)
			continue
		}
		m := *s.Mistake
		m.Text += " (with " + strings.Join(levels, ", ") + ")"
		combined = append(combined, &m)
	}
	if len(single) > 0 {
		return single
	}
	return combined
}

// cause returns the levels with which a mistake occurs. alone is true if the mistake can be
// understood without them: it occurs in all combinations, or in all combinations with the one level
// at whose place it is.
func (g *gathered) cause(s *seenIn) (levels []string, alone bool) {
	if len(s.in) == g.matrix.Variants() {
		return nil, true
	}
	for i, f := range g.matrix {
		l := s.in[0][i]
		same := !slices.ContainsFunc(s.in, func(in []int) bool { return in[i] != l })
		if !same {
			continue
		}
		here := slices.ContainsFunc(f.Levels[l].set, func(set setting) bool { return set.value.Within(s.Mistake) || set.at.Is(s.Mistake) })
		if here && len(s.in)*len(f.Levels) == g.matrix.Variants() {
			return nil, true
		}
		levels = append(levels, fmt.Sprintf("%s %s", f.Key, f.Levels[l].Name))
	}
	return levels, len(levels) == 0
}
