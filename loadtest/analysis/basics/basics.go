// Package basics contains helpers that all stages of the analysis use: pointers to elements and
// optional values, spans of time, and short lists.
package basics

import (
	"iter"
	"time"

	"weir/internal/stats"
)

// Each yields a pointer to each element of s, in order.
func Each[T any](s []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range s {
			if !yield(&s[i]) {
				return
			}
		}
	}
}

// EntryOf returns the value of m at key. It inserts a zero value if the key is missing.
func EntryOf[K comparable, T any](m *map[K]*T, key K) *T {
	if *m == nil {
		*m = map[K]*T{}
	}
	v := (*m)[key]
	if v == nil {
		v = new(T)
		(*m)[key] = v
	}
	return v
}

// Part returns a pointer to stats.Ratio(a, b).
func Part(a, b float64) *float64 { return new(stats.Ratio(a, b)) }

// Value returns *p, and 0 if p is nil.
func Value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

// Over returns x/n, or nil if x is unknown or n is not positive.
func Over(x *float64, n float64) *float64 {
	if x == nil || !(n > 0) {
		return nil
	}
	return new(*x / n)
}

// Duration returns a number of seconds as a time.Duration.
func Duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// Common returns the part of the span from to to that lies between begin and end. Its length is
// negative if the two spans do not overlap.
func Common(from, to, begin, end time.Time) (time.Time, time.Time) {
	if begin.After(from) {
		from = begin
	}
	if end.Before(to) {
		to = end
	}
	return from, to
}

// SecondsShared returns the number of seconds that the two spans have in common.
func SecondsShared(from, to, begin, end time.Time) float64 {
	from, to = Common(from, to, begin, end)
	return max(0, to.Sub(from).Seconds())
}
