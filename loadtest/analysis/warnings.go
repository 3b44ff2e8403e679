package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/storage"
)

// mostWarnings is the number of warnings from which warnings of events are left out.
const mostWarnings = 20

// addWarnings adds warnings to the findings.
func (f *Findings) addWarnings(all ...fact.Fact) {
	f.WarningFacts = append(f.WarningFacts, all...)
	f.Warnings = append(f.Warnings, fact.Texts(all)...)
}

// addFact adds a warning to the findings, see fact.New.
func (f *Findings) addFact(code string, pairs ...any) { f.addWarnings(fact.New(code, pairs...)) }

// warn adds remarks that do not affect the validity of the result.
func (f *Findings) warn(d *steps.Run, curve *steps.Curve) {
	f.warnOfErrors(d)
	few, retried := 0, int64(0)
	for _, s := range curve.Steps {
		if s.ThroughputLow == nil {
			few++
		}
		retried += s.Retried
	}
	if few > 0 {
		f.addFact("warning.no_interval", "few", few, "steps", len(curve.Steps), "seconds", stats.LeastBatches)
	}
	if host := shared(curve); host != "" {
		f.addFact("warning.shared_cpu", "host", host)
	}
	switch share := discardedShare(curve); {
	case d.Moved == 0 || share <= 0:
	case encrypted(d.Plan.Target):
		f.addFact("warning.discarded_encrypted", "share", share)
	default:
		f.addFact("warning.discarded", "share", share)
	}
	f.warnOfUnfairness(curve)
	if retried > 0 {
		f.addFact("warning.retried", "operations", retried)
	}
	f.addWarnings(commandFacts(d)...)
	f.warnOfEvents(d)
}

// warnOfEvents adds the warnings that the run recorded.
func (f *Findings) warnOfEvents(d *steps.Run) {
	for _, e := range d.Events {
		text := strings.TrimSpace(e.Text)
		if e.Kind != measure.EventWarning || len(f.Warnings) >= mostWarnings || slices.Contains(f.Warnings, text) {
			continue // several workers may report the same
		}
		f.addFact("warning.of_run", "text", text)
	}
}

// commandFacts returns the commands of the scenario that ran, or did not run.
func commandFacts(d *steps.Run) (all []fact.Fact) {
	for _, e := range d.Events {
		switch c := e.Command; {
		case c == nil || c.State == measure.CommandBegan:
		case c.State == measure.CommandEnded:
			all = append(all, fact.New("warning.command", "command", c.Run, "after", c.After, "exit_code", c.Exit))
		case c.State == measure.CommandKilled:
			all = append(all, fact.New("warning.command_killed", "command", c.Run, "after", c.After))
		default:
			all = append(all, fact.New("warning.command_not_run", "command", c.Run, "after", c.After))
		}
	}
	return all
}

// warnOfErrors adds the text of the first error of each class.
func (f *Findings) warnOfErrors(d *steps.Run) {
	seen := map[storage.Class]bool{}
	for _, e := range d.Events {
		if e.Kind == measure.EventError && e.Class != storage.Canceled && !seen[e.Class] {
			seen[e.Class] = true
			text := strings.TrimSpace(e.Text)
			f.addFact("warning.first_error", "class", e.Class.String(), "error", fact.As(text, fmt.Sprintf("%.300s", text)))
		}
	}
}

// encrypted reports whether the scheme of a target implies TLS.
func encrypted(target string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(target), ":")
	return slices.Contains([]string{"https", "davs", "roots", "xroots"}, scheme)
}

func discardedShare(curve *steps.Curve) float64 {
	var discarded, moved int64
	for _, s := range curve.Steps {
		discarded += s.Discarded
		moved += s.Moved
	}
	return math.Min(1, stats.Ratio(float64(discarded), float64(moved)))
}

// shared returns the name of a host that both sides used, "" if there is no such host.
func shared(curve *steps.Curve) string {
	for _, s := range curve.Steps {
		for _, h := range s.Hosts {
			if h.Role == "both" || h.ServerCores != nil && h.ClientCores != nil {
				return h.Host
			}
		}
	}
	return ""
}

// warnOfUnfairness warns if clients were served unequally, with the load at which the inequality
// was largest.
func (f *Findings) warnOfUnfairness(curve *steps.Curve) {
	var worst *steps.Working
	for _, s := range curve.Steps {
		if s.Unequal && s.Excluded == "" && (worst == nil || *s.Fairness < *worst.Fairness) {
			worst = s
		}
	}
	if worst != nil {
		f.addFact("warning.unfair", "load", curve.At(worst), "clients", math.Round(*worst.Fairness*worst.ActiveClients), "index", *worst.Fairness)
	}
}
