package campaign

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"weir/loadtest/scenario"
)

// Most is the maximum number of runs of a campaign.
const Most = 1000

// A Planned campaign has all its runs and, for each variant by its name, the scenario that it
// represents. The seed of a variant's scenario applies to its first block; SeedOf returns the seeds
// of the other blocks.
type Planned struct {
	Campaign
	Scenarios map[string]*scenario.Scenario
}

// Plan makes one campaign of all repetitions and combinations of the given scenarios. Several
// scenarios become the levels of a factor called scenario. At least one scenario is required.
// Scenarios that are compared must have the same number of repetitions and the same matrix, or no
// matrix; the campaign takes its name and seed from the first scenario. The error states the
// correction.
func Plan(scenarios []*scenario.Scenario) (*Planned, error) {
	first := scenarios[0]
	p := &Planned{Scenarios: map[string]*scenario.Scenario{}}
	p.Version, p.Name, p.Repeat, p.Seed = Version, first.Name, first.Repeat, first.Seed
	if len(scenarios) > 1 {
		names, err := levelsOf(scenarios)
		if err != nil {
			return nil, err
		}
		p.Name = strings.Join(names, "-")
		p.Factors = append(p.Factors, Factor{Key: "scenario", Levels: names})
	}
	own := factors(first)
	p.Factors = append(p.Factors, own...)
	var variants []Run
	for i, s := range scenarios {
		switch {
		case s.Repeat != p.Repeat:
			return nil, fmt.Errorf("%s is repeated %d times, %s %d times: say with --repeat how often each is run", first.File(), p.Repeat,
				s.File(), s.Repeat)
		case !slices.EqualFunc(factors(s), own, sameFactor):
			return nil, fmt.Errorf("%s and %s have different matrices: scenarios that are compared have the same factors and levels, or none",
				first.File(), s.File())
		}
		for _, v := range s.Variants() {
			levels := v.Levels
			if len(scenarios) > 1 {
				levels = slices.Concat([]string{p.Factors[0].Levels[i]}, levels)
			}
			r := Run{Variant: letters(len(variants)), Levels: map[string]string{}, Scenario: text(p.Factors, levels)}
			for f, level := range levels {
				r.Levels[p.Factors[f].Key] = level
			}
			p.Scenarios[r.Variant] = v.Scenario
			variants = append(variants, r)
		}
	}
	if n := len(variants) * p.Repeat; n > Most {
		return nil, fmt.Errorf("%d variants, %d times each, are %d runs: at most %d", len(variants), p.Repeat, n, Most)
	}
	p.Name = fit(p.Name)
	p.schedule(variants)
	return p, nil
}

// levelsOf returns distinct names of scenarios: their own names, else the names of their files,
// else the paths.
func levelsOf(scenarios []*scenario.Scenario) ([]string, error) {
	var names, files, paths []string
	for _, s := range scenarios {
		names, paths = append(names, s.Name), append(paths, s.File())
		files = append(files, strings.TrimSuffix(filepath.Base(s.File()), filepath.Ext(s.File())))
	}
	for _, words := range [][]string{names, files, paths} {
		if distinct(words) == len(words) {
			return words, nil
		}
	}
	return nil, fmt.Errorf("a scenario is named twice: use --repeat to run the same one again")
}

// fit turns name into a valid name of a run.
func fit(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
}

func factors(s *scenario.Scenario) []Factor {
	var out []Factor
	for _, f := range s.Matrix {
		g := Factor{Key: f.Key}
		for _, l := range f.Levels {
			g.Levels = append(g.Levels, l.Name)
		}
		out = append(out, g)
	}
	return out
}

func sameFactor(a, b Factor) bool { return a.Key == b.Key && slices.Equal(a.Levels, b.Levels) }

func text(factors []Factor, levels []string) string {
	parts := make([]string, len(levels))
	for i, l := range levels {
		parts[i] = factors[i].Key + "=" + l
	}
	return strings.Join(parts, ", ")
}

// letters returns a for 0, b for 1 ... z, aa, ab ...
func letters(n int) string {
	out := ""
	for n++; n > 0; n = (n - 1) / 26 {
		out = string(rune('a'+(n-1)%26)) + out
	}
	return out
}

// schedule adds the runs of all blocks in their order.
func (p *Planned) schedule(variants []Run) {
	width := max(3, len(fmt.Sprint(len(variants)*p.Repeat)))
	for b, order := range Order(len(variants), p.Repeat, p.Seed) {
		for _, v := range order {
			r := variants[v]
			r.Number, r.Block = len(p.Runs)+1, b+1
			r.Dir = fmt.Sprintf("%0*d-%s", width, r.Number, r.Variant)
			p.Runs = append(p.Runs, r)
		}
	}
}

// Order returns, for each block, the order in which the variants, numbered from 0, are run: a
// randomized complete block design (R. A. Fisher, The Design of Experiments, 1935). Each block has
// each variant once, in a random order that seed determines. Two variants alternate, so that at
// most one run lies between two runs of the same variant: 0 1 0 1.
func Order(variants, blocks int, seed uint64) [][]int {
	r := rand.New(rand.NewPCG(seed, 0x77656972)) // another stream than the clients'
	out := make([][]int, blocks)
	for b := range out {
		if variants > 2 {
			out[b] = r.Perm(variants)
			continue
		}
		for v := range variants {
			out[b] = append(out[b], v)
		}
	}
	return out
}

// SeedOf returns the seed of the runs of a block, from 1: the campaign's own seed for the first
// block, then seeds derived from it. All variants of a block share the seed (common random
// numbers), so random choices are the same for all of them. Derived seeds are below 2^53, so that
// every JSON reader keeps them exactly.
func SeedOf(seed uint64, block int) uint64 {
	if block <= 1 {
		return seed
	}
	// The block-th output of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
	z := seed + uint64(block)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) >> 11
}
