package schedule

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/transfer"
)

// A Verdict reports the accuracy that the predictors would have had on a history.
type Verdict struct {
	Tries      int         `json:"attempts"`
	Used       int         `json:"used"`      // successful copies that moved bytes
	Unsampled  int         `json:"unsampled"` // used copies without a sample of the source's host
	Pairs      int         `json:"pairs"`     // pairs of copies from two sources at about the same time
	Predictors []Predictor `json:"predictors"`
}

// A Predictor reports the accuracy of one predictor. All predictors are compared on the same
// copies: the copies that each of them predicted.
type Predictor struct {
	Name   string         `json:"name"`
	What   string         `json:"what"`
	Copies int            `json:"copies"`
	Ratio  []Quantile     `json:"ratio"`       // of predicted seconds to actual seconds: 1 is right
	Error  Quantile       `json:"error"`       // median of the factor by which a prediction was too long or too short
	Right  int            `json:"right"`       // pairs of which it identified the faster source
	Share  float64        `json:"share"`       // fraction of all pairs
	Range  stats.Interval `json:"share_range"` // 95%
}

// A Quantile is a quantile of a set of numbers, with its 95% interval if there are enough of them.
type Quantile struct {
	Q     float64         `json:"q"`
	Value float64         `json:"value"`
	Range *stats.Interval `json:"range,omitempty"`
}

// A predictor predicts the duration of a copy in seconds, from the copies that ended before.
type predictor interface {
	learn(t *transfer.PastAttempt, seconds float64)
	predict(t *transfer.PastAttempt) (seconds float64, ok bool)
}

// Backtest replays past attempts in the order of time. Each predictor predicts the duration of each
// copy from nothing but the copies that had ended when it began.
func Backtest(tries []transfer.PastAttempt) Verdict {
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
		copies = append(copies, &past{PastAttempt: t, seconds: s})
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
	*transfer.PastAttempt
	seconds float64
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// replay returns the prediction of p for each copy, NaN if there is no prediction.
func replay(copies []*past, p predictor) []float64 {
	begins, ends := indices(len(copies)), indices(len(copies))
	slices.SortStableFunc(begins, func(a, b int) int { return copies[a].Begin.Compare(copies[b].Begin) })
	slices.SortStableFunc(ends, func(a, b int) int { return copies[a].End.Compare(copies[b].End) })
	said := make([]float64, len(copies))
	ended := 0
	for _, i := range begins {
		for ended < len(ends) && !copies[ends[ended]].End.After(copies[i].Begin) {
			c := copies[ends[ended]]
			p.learn(c.PastAttempt, c.seconds)
			ended++
		}
		s, ok := p.predict(copies[i].PastAttempt)
		if !ok || !stats.Finite(s) || s <= 0 {
			s = math.NaN()
		}
		said[i] = s
	}
	return said
}

// together is the maximum time between the beginnings of two copies that are compared.
const together = time.Minute

// pair finds copies to the same destination from two sources, of about the same size and time, of
// which one was clearly faster. Each copy is in one pair at most, so that the pairs are
// independent.
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

// quantile returns a quantile of sorted numbers with the interval between two of them that contains
// it in 95% of cases, if they are independent: their ranks are the 2.5% and 97.5% quantiles of a
// binomial distribution (David and Nagaraja, Order Statistics, 7.1; here by the normal
// approximation).
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

// wilson returns the 95% interval of a share (Wilson, Journal of the American Statistical
// Association 22, 1927).
func wilson(k, n int) stats.Interval {
	const z = 1.96
	p, m := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return stats.Interval{Low: max(0, mid-half), High: min(1, mid+half)}
}

// Write prints a Verdict as a table and sentences.
func (v Verdict) Write(w io.Writer) error {
	b := new(bytes.Buffer)
	fmt.Fprintf(b, "%s, of which %d moved bytes and succeeded.\n", say.Plural(v.Tries, "attempt"), v.Used)
	if v.Used > 0 && v.Unsampled > 0 {
		fmt.Fprintf(b, "CPU and memory of the source are not known of %d of them: these are not compared.\n", v.Unsampled)
	}
	if len(v.Predictors) == 0 || v.Predictors[0].Copies == 0 {
		fmt.Fprintln(b, "That is too little to judge predictions by: it takes more than ten copies with a monitored source.")
	} else {
		v.table(b)
		fmt.Fprintln(b, v.sentence())
	}
	_, err := b.WriteTo(w)
	return err
}

func (v Verdict) table(b *bytes.Buffer) {
	t := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	row := func(format string, a ...any) { _, _ = fmt.Fprintf(t, format, a...) } // to a buffer: it cannot fail
	row("PREDICTOR\tCOPIES\tERROR\tPREDICTED / TRUE (10%%, 50%%, 90%%)\tFASTER SOURCE NAMED\tBY\n")
	for _, p := range v.Predictors {
		row("%s\t%d\t%s\t%s\t%s\t%s\n", p.Name, p.Copies, times(p.Error), p.ratios(), p.named(v.Pairs), p.What)
	}
	_ = t.Flush()
}

func times(q Quantile) string {
	s := fmt.Sprintf("%.2fx", q.Value)
	if q.Range != nil {
		s += fmt.Sprintf(" [%.2f, %.2f]", q.Range.Low, q.Range.High)
	}
	return s
}

func (p Predictor) ratios() string {
	s := ""
	for _, q := range p.Ratio {
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf("%.2f", q.Value)
	}
	return s
}

func (p Predictor) named(pairs int) string {
	if pairs == 0 {
		return "no pairs"
	}
	return fmt.Sprintf("%d of %d: %s [%s, %s]", p.Right, pairs, unit.Percent(p.Share), unit.Percent(p.Range.Low), unit.Percent(p.Range.High))
}

// sentence names the best predictor, and reports whether it is significantly better than the
// second.
func (v Verdict) sentence() string {
	best, second := v.Predictors[0], Predictor{}
	for _, p := range v.Predictors[1:] {
		switch {
		case p.Error.Value < best.Error.Value:
			best, second = p, best
		case second.Name == "" || p.Error.Value < second.Error.Value:
			second = p
		}
	}
	s := fmt.Sprintf("Half of what %q predicts is less than %.2f times too long or too short", best.Name, best.Error.Value)
	if best.Error.Range == nil || second.Error.Range == nil || best.Error.Range.High >= second.Error.Range.Low {
		return s + fmt.Sprintf("; that it is better than %q (%.2f) is not certain.", second.Name, second.Error.Value)
	}
	return s + fmt.Sprintf("; the next is %q with %.2f. (Intervals are of 95%%, if copies are independent of each other.)", second.Name,
		second.Error.Value)
}
