package analysis

import (
	"fmt"
	"iter"
	"time"

	"weir/internal/stats"
)

// each yields a pointer to each element of s, in order.
func each[T any](s []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range s {
			if !yield(&s[i]) {
				return
			}
		}
	}
}

// entryOf returns the value of m at key, which it makes if there is none.
func entryOf[K comparable, T any](m *map[K]*T, key K) *T {
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

// ratio returns a/b, and 0 where that is no finite number.
func ratio(a, b float64) float64 { return stats.Ratio(a, b) }

// part returns a pointer to ratio(a, b).
func part(a, b float64) *float64 { return new(ratio(a, b)) }

// finite returns x, and 0 if JSON has no text for it.
func finite(x float64) float64 { return stats.OrZero(x) }

// value returns *p, and 0 if p is nil.
func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

// over returns x/n, and nil if that is unknown.
func over(x *float64, n float64) *float64 {
	if x == nil || !(n > 0) {
		return nil
	}
	return new(*x / n)
}

// duration returns a number of seconds as a time.Duration.
func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// common returns the part of from to to that lies between begin and end; its length is negative if there is none.
func common(from, to, begin, end time.Time) (time.Time, time.Time) {
	if begin.After(from) {
		from = begin
	}
	if end.Before(to) {
		to = end
	}
	return from, to
}

// secondsShared returns how many seconds the two spans have in common.
func secondsShared(from, to, begin, end time.Time) float64 {
	from, to = common(from, to, begin, end)
	return max(0, to.Sub(from).Seconds())
}

// head returns the first n texts, and how many more there are.
func head(texts []string, n int) []string {
	if len(texts) > n {
		return append(texts[:n:n], fmt.Sprintf("and %d more", len(texts)-n))
	}
	return texts
}
