package schedule

import (
	"fmt"
	"io"
	"text/tabwriter"

	"weir/internal/say"
	"weir/internal/unit"
)

// Write tells a Verdict as a table and sentences.
func (v Verdict) Write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s, of which %d moved bytes and succeeded.\n", say.Plural(v.Tries, "attempt"), v.Used); err != nil {
		return err
	}
	if v.Used > 0 && v.Unsampled > 0 {
		fmt.Fprintf(w, "Of %d of them CPU and memory of the source are not known: they cannot be compared.\n", v.Unsampled) //nolint:errcheck // the last one tells
	}
	if len(v.Predictors) == 0 || v.Predictors[0].Copies == 0 {
		_, err := fmt.Fprintln(w, "That is too little to judge predictions by: it takes more than ten copies whose sources were seen.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "PREDICTOR\tCOPIES\tERROR\tPREDICTED / TRUE (10%, 50%, 90%)\tFASTER SOURCE NAMED\tBY") //nolint:errcheck // Flush tells
	for _, p := range v.Predictors {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", p.Name, p.Copies, times(p.Error), p.ratios(), p.named(v.Pairs), p.What) //nolint:errcheck // Flush tells
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, v.sentence())
	return err
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

// sentence says which one was best, if that can be said.
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
	return s + fmt.Sprintf("; the next is %q with %.2f. (Intervals are of 95%%, if copies are independent of each other.)", second.Name, second.Error.Value)
}
