package workload

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"weir/internal/unit"
)

// Draw returns a duration of s: its fixed duration, a duration between its bounds (both inclusive,
// all equally likely), or an exponential duration. It is never negative.
func (s Span) Draw(r *rand.Rand) time.Duration {
	switch {
	case len(s.Uniform) == 2:
		from, to := int64(s.Uniform[0]), int64(s.Uniform[1])
		return time.Duration(from + r.Int64N(to-from+1))
	case s.Exponential > 0:
		return time.Duration(math.Min(r.ExpFloat64()*float64(s.Exponential), math.MaxInt64/2))
	}
	return time.Duration(s.Fixed)
}

// Mean returns the mean duration of s.
func (s Span) Mean() time.Duration {
	switch {
	case len(s.Uniform) == 2:
		return time.Duration(s.Uniform[0]/2 + s.Uniform[1]/2)
	case s.Exponential > 0:
		return time.Duration(s.Exponential)
	}
	return time.Duration(s.Fixed)
}

// most returns the longest duration of s. An exponential duration has no maximum, but is rarely
// longer than twenty times its mean, which most returns.
func (s Span) most() time.Duration {
	if len(s.Uniform) == 2 {
		return time.Duration(s.Uniform[1])
	}
	return time.Duration(max(s.Fixed, s.Exponential))
}

func (s Span) check() error {
	return checkDrawn("durations", "fixed, uniform and exponential", s.Uniform, s.Fixed, s.Exponential)
}

// checkDrawn checks the ways to draw a value, of which at most one may be used: uniform, and the
// values in fixed, which are used if they are not 0.
func checkDrawn[T ~int64](what, ways string, uniform []T, fixed ...T) error {
	set, least := 0, T(0)
	for _, x := range fixed {
		least = min(least, x)
		if x != 0 {
			set++
		}
	}
	switch {
	case set > 1 || set > 0 && uniform != nil:
		return fmt.Errorf("more than one of %s; keep one", ways)
	case least < 0:
		return errors.New("cannot be negative; use 0 or more")
	case uniform == nil:
		return nil
	case len(uniform) != 2:
		return fmt.Errorf("uniform has %d %s; write [from, to]", len(uniform), what)
	case uniform[0] < 0 || uniform[1] < uniform[0] || uniform[1] == math.MaxInt64:
		return errors.New("uniform needs 0 <= from <= to")
	}
	return nil
}

// A Sampler draws a size in bytes. It may be used by many goroutines.
type Sampler func(r *rand.Rand) int64

// Sampler returns a function that draws sizes of d, so that d is read only once. Equal Dists draw
// equal sizes from equal generators.
func (d Dist) Sampler() (Sampler, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	switch {
	case len(d.Uniform) == 2:
		from, to := int64(d.Uniform[0]), int64(d.Uniform[1])
		return func(r *rand.Rand) int64 { return from + r.Int64N(to-from+1) }, nil
	case len(d.Weights) > 0:
		return d.weighted()
	}
	fixed := int64(d.Fixed)
	return func(*rand.Rand) int64 { return fixed }, nil
}

func (d Dist) weighted() (Sampler, error) {
	sizes := make([]int64, 0, len(d.Weights))
	until := make([]float64, 0, len(d.Weights))
	sum := 0.0
	for _, text := range slices.Sorted(maps.Keys(d.Weights)) { // in an order that the map does not decide
		size, err := unit.ParseSize(text)
		if err != nil {
			return nil, fmt.Errorf("weights: %w", err)
		}
		if d.Weights[text] == 0 {
			continue
		}
		sum += d.Weights[text]
		sizes, until = append(sizes, int64(size)), append(until, sum)
	}
	return func(r *rand.Rand) int64 {
		x := r.Float64() * sum
		i := 0
		for i < len(until)-1 && x >= until[i] {
			i++
		}
		return sizes[i]
	}, nil
}

// Mean returns the mean size of d in bytes.
func (d Dist) Mean() float64 {
	switch {
	case len(d.Uniform) == 2:
		return float64(d.Uniform[0])/2 + float64(d.Uniform[1])/2
	case len(d.Weights) > 0:
		sum, all := 0.0, 0.0
		for text, weight := range d.Weights {
			if size, err := unit.ParseSize(text); err == nil {
				sum, all = sum+weight*float64(size), all+weight
			}
		}
		return sum / all
	}
	return float64(d.Fixed)
}

// Most returns the largest size that d can have, in bytes.
func (d Dist) Most() int64 {
	switch {
	case len(d.Uniform) == 2:
		return int64(d.Uniform[1])
	case len(d.Weights) > 0:
		most := int64(0)
		for text, weight := range d.Weights {
			if size, err := unit.ParseSize(text); err == nil && weight > 0 {
				most = max(most, int64(size))
			}
		}
		return most
	}
	return int64(d.Fixed)
}

// Text describes d for people: "1MiB", "1MiB to 4MiB", or the sizes that have weights.
func (d Dist) Text() string {
	switch {
	case len(d.Uniform) == 2:
		return fmt.Sprintf("%v to %v", d.Uniform[0], d.Uniform[1])
	case len(d.Weights) > 0:
		return strings.Join(slices.Sorted(maps.Keys(d.Weights)), ", ")
	}
	return d.Fixed.String()
}

func (d Dist) check() error {
	const ways = "fixed, uniform and weights"
	if d.Weights == nil {
		return checkDrawn("sizes", ways, d.Uniform, d.Fixed)
	}
	if d.Fixed != 0 || d.Uniform != nil {
		return fmt.Errorf("more than one of %s; keep one", ways)
	}
	if err := weights(d.Weights); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	return nil
}

// weights checks that m can be drawn from.
func weights(m map[string]float64) error {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(m)) {
		w := m[name]
		if w < 0 || math.IsNaN(w) || math.IsInf(w, 0) {
			return fmt.Errorf("%s: %v is not a weight; use a number, 0 or more", name, w)
		}
		sum += w
	}
	if sum <= 0 || math.IsInf(sum, 0) {
		return errors.New("no weight above 0")
	}
	return nil
}
