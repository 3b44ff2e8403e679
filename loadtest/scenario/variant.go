package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/internal/tags"
)

// A Variant is a scenario with one level of each factor of its matrix, ready
// to be planned: it has no matrix itself, and is not repeated.
type Variant struct {
	Levels   []string // names, in the order of the factors
	Scenario *Scenario
}

// Variants returns the combinations of the matrix' levels, the one with the
// first level of each factor first, those that differ in the last factor side
// by side. A scenario without a matrix is its only variant. What was changed
// in s since it was read counts for the latter alone.
func (s *Scenario) Variants() []Variant {
	if len(s.Matrix) > 0 {
		return slices.Clone(s.variants)
	}
	one := *s
	one.Repeat = 1
	return []Variant{{Scenario: &one}}
}

// File returns the path that s was read from, "" if it was from none.
func (s *Scenario) File() string { return s.file }

// scenarioKeys returns the keys at the top of a scenario.
func scenarioKeys() []string { return tags.Names(reflect.TypeFor[Scenario]()) }

// variants makes a scenario of each combination of m's levels and checks it.
// It returns the first one, which knows the others.
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
				sub.insert(changed, strings.Split(set.path, "."), sub.Copy(set.value), set.at)
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

// levels returns the number of each factor's level in a combination: the last
// factor changes fastest.
func (m Matrix) levels(combination int) []int {
	out := make([]int, len(m))
	for i := len(m) - 1; i >= 0; i-- {
		n := len(m[i].Levels)
		out[i], combination = combination%n, combination/n
	}
	return out
}

// Gathered mistakes are those of all combinations, each once.
type gathered struct {
	matrix Matrix
	seen   []*seenIn
}

// seenIn is a mistake and the combinations that have it.
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

// mistakes returns what is wrong with the scenario or with single levels; if
// there is nothing, what is wrong with combinations, and names these.
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

// cause returns the levels with which a mistake comes, and whether it needs
// none to be understood: it comes with all of them, or with the one level at
// whose own place it is.
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
