package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"weir/analysis/stats"
	"weir/transfer"
)

// A Verdict is how well the predictors would have done on a history.
type Verdict struct {
	Tries      int         `json:"attempts"`
	Used       int         `json:"used"`      // good copies that moved bytes
	Unsampled  int         `json:"unsampled"` // of these, those whose source's host was not seen
	Pairs      int         `json:"pairs"`     // of copies from two sources at about the same time
	Predictors []Predictor `json:"predictors"`
}

// A Predictor is how well one of them did. All of them are judged by the same
// copies: those that each of them predicted.
type Predictor struct {
	Name   string         `json:"name"`
	What   string         `json:"what"`
	Copies int            `json:"copies"`
	Ratio  []Quantile     `json:"ratio"`       // of predicted seconds to those it took: 1 is right
	Error  Quantile       `json:"error"`       // median of how many times too long or too short
	Right  int            `json:"right"`       // pairs of which it named the faster source
	Share  float64        `json:"share"`       // of all pairs
	Range  stats.Interval `json:"share_range"` // 95%
}

// A Quantile is one of a set of numbers, with its 95% interval if there are
// enough of them.
type Quantile struct {
	Q     float64         `json:"q"`
	Value float64         `json:"value"`
	Range *stats.Interval `json:"range,omitempty"`
}

// A predictor says how many seconds a copy takes, from what ended before.
type predictor interface {
	learn(t *transfer.Try, seconds float64)
	predict(t *transfer.Try) (seconds float64, ok bool)
}

// Backtest goes through attempts of the past in the order of time, and has each
// predictor say for each copy how long it would take, from nothing but the copies
// that had ended when it began.
func Backtest(tries []transfer.Try) Verdict {
	v := Verdict{Tries: len(tries)}
	var copies []*past
	for i := range tries {
		t := &tries[i]
		s := t.End.Sub(t.Begin).Seconds()
		if t.Fault != "" || t.Existed || t.Moved <= 0 || s <= 0 {
			continue
		}
		if v.Used++; t.CPU < 0 {
			v.Unsampled++
		}
		copies = append(copies, &past{Try: t, seconds: s})
	}
	all := []struct {
		name, what string
		predictor
	}{
		{"mean", "the mean rate of all copies of the link", &naive{links: map[way]*total{}}},
		{"recent", "recent copies of the link: a fixed time and a rate", &lately{links: map[way]*Recent{}}},
		{"regression", "Transfer2Go's: CPU and memory of the source", &regressed{}},
	}
	said := make([][]float64, len(all))
	for i, p := range all {
		said[i] = replay(copies, p)
	}
	common := slices.DeleteFunc(indices(len(copies)), func(i int) bool {
		return slices.ContainsFunc(said, func(s []float64) bool { return math.IsNaN(s[i]) })
	})
	pairs := pair(copies, common)
	v.Pairs = len(pairs)
	for i, p := range all {
		v.Predictors = append(v.Predictors, judge(p.name, p.what, copies, said[i], common, pairs))
	}
	return v
}

type past struct {
	*transfer.Try
	seconds float64
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// replay returns what p says of each copy, NaN if nothing.
func replay(copies []*past, p predictor) []float64 {
	begins, ends := indices(len(copies)), indices(len(copies))
	slices.SortStableFunc(begins, func(a, b int) int { return copies[a].Begin.Compare(copies[b].Begin) })
	slices.SortStableFunc(ends, func(a, b int) int { return copies[a].End.Compare(copies[b].End) })
	said := make([]float64, len(copies))
	ended := 0
	for _, i := range begins {
		for ended < len(ends) && !copies[ends[ended]].End.After(copies[i].Begin) {
			c := copies[ends[ended]]
			p.learn(c.Try, c.seconds)
			ended++
		}
		s, ok := p.predict(copies[i].Try)
		if !ok || !stats.Finite(s) || s <= 0 {
			s = math.NaN()
		}
		said[i] = s
	}
	return said
}

// together is how far apart two copies may have begun that are compared.
const together = time.Minute

// pair finds copies to the same destination from two sources, of about the same
// size and time, one of which was clearly faster. Each copy is in one pair at
// most, so that pairs tell independent things.
func pair(copies []*past, of []int) (pairs [][2]int) {
	byTime := slices.Clone(of)
	slices.SortStableFunc(byTime, func(a, b int) int {
		return cmp.Or(cmp.Compare(copies[a].Dest, copies[b].Dest), copies[a].Begin.Compare(copies[b].Begin))
	})
	taken := map[int]bool{}
	for at, a := range byTime {
		if taken[a] {
			continue
		}
		for _, b := range byTime[at+1:] {
			if copies[b].Dest != copies[a].Dest || copies[b].Begin.Sub(copies[a].Begin) > together {
				break
			}
			if !taken[b] && alike(copies[a], copies[b]) {
				taken[a], taken[b] = true, true
				pairs = append(pairs, [2]int{a, b})
				break
			}
		}
	}
	return pairs
}

func alike(a, b *past) bool {
	sizes := float64(a.Moved) / float64(b.Moved)
	return a.Source != b.Source && sizes > 0.5 && sizes < 2 && math.Abs(math.Log(a.rate()/b.rate())) > 0.05
}

func (p *past) rate() float64 { return float64(p.Moved) / p.seconds }

func judge(name, what string, copies []*past, said []float64, common []int, pairs [][2]int) Predictor {
	p := Predictor{Name: name, What: what, Copies: len(common)}
	ratios, errors := make([]float64, 0, len(common)), make([]float64, 0, len(common))
	for _, i := range common {
		r := said[i] / copies[i].seconds
		ratios = append(ratios, r)
		errors = append(errors, max(r, 1/r))
	}
	slices.Sort(ratios)
	slices.Sort(errors)
	if len(common) > 0 {
		for _, q := range []float64{0.1, 0.5, 0.9} {
			p.Ratio = append(p.Ratio, quantile(ratios, q))
		}
		p.Error = quantile(errors, 0.5)
	}
	for _, pr := range pairs {
		a, b := pr[0], pr[1]
		faster := copies[a].rate() > copies[b].rate()
		if said[a] != said[b] && (float64(copies[a].Moved)/said[a] > float64(copies[b].Moved)/said[b]) == faster {
			p.Right++
		}
	}
	if len(pairs) > 0 {
		p.Share = float64(p.Right) / float64(len(pairs))
		p.Range = wilson(p.Right, len(pairs))
	}
	return p
}

// quantile returns a quantile of sorted numbers with the interval between two of
// them that holds it in 95% of cases, if they are independent: their places are
// those of a binomial distribution's 2.5% and 97.5% (David and Nagaraja, Order
// Statistics, 7.1; here by the normal approximation).
func quantile(sorted []float64, q float64) Quantile {
	n := float64(len(sorted))
	half := 1.96 * math.Sqrt(n*q*(1-q))
	low, high := int(math.Floor(n*q-half))-1, int(math.Ceil(n*q+half))
	result := Quantile{Q: q, Value: stats.SortedQuantile(sorted, q)}
	if low >= 0 && high < len(sorted) {
		result.Range = &stats.Interval{Low: sorted[low], High: sorted[high]}
	}
	return result
}

// wilson is the 95% interval of a share (Wilson, Journal of the American
// Statistical Association 22, 1927).
func wilson(k, n int) stats.Interval {
	const z = 1.96
	p, m := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return stats.Interval{Low: max(0, mid-half), High: min(1, mid+half)}
}
