package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/storage"
)

// warnings are remarks that do not touch the validity of the result.
func warnings(d *steps.Run, curve *steps.Curve) []string {
	var all []string
	all = append(all, firstErrors(d)...)
	few := 0
	for _, s := range curve.Steps {
		if s.ThroughputLow == nil {
			few++
		}
	}
	if few > 0 {
		all = append(all, fmt.Sprintf("%d of %d steps were measured for less than %d s: they have no confidence interval", few, len(curve.Steps),
			stats.LeastBatches))
	}
	if host := shared(curve); host != "" {
		all = append(all, "clients and service share the CPU of "+host+": the curve is that of both together")
	}
	if d.Moved > 0 {
		if share := discardedShare(curve); share > 0 {
			all = append(all, fmt.Sprintf("%s of the payload was counted and discarded in the kernel, not %scopied to the clients",
				unit.Percent(share), decrypted(d.Plan.Target)))
		}
	}
	if text := unfair(curve); text != "" {
		all = append(all, text)
	}
	var retried int64
	for _, s := range curve.Steps {
		retried += s.Retried
	}
	if retried > 0 {
		all = append(all, fmt.Sprintf("%d operations were retried", retried))
	}
	for _, e := range d.Events {
		// workers may say the same
		if text := strings.TrimSpace(e.Text); e.Kind == measure.EventWarning && len(all) < 20 && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// firstErrors tells the first error of each class in its own words.
func firstErrors(d *steps.Run) (all []string) {
	seen := map[storage.Class]bool{}
	for _, e := range d.Events {
		if e.Kind == measure.EventError && e.Class != storage.Canceled && !seen[e.Class] {
			seen[e.Class] = true
			all = append(all, fmt.Sprintf("first error of class %q: %.300s", e.Class, strings.TrimSpace(e.Text)))
		}
	}
	return all
}

// decrypted returns "decrypted and " for targets whose scheme is that of TLS.
func decrypted(target string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(target), ":")
	if slices.Contains([]string{"https", "davs", "roots", "xroots"}, scheme) {
		return "decrypted and "
	}
	return ""
}

func discardedShare(curve *steps.Curve) float64 {
	var discarded, moved int64
	for _, s := range curve.Steps {
		discarded += s.Discarded
		moved += s.Moved
	}
	return math.Min(1, stats.Ratio(float64(discarded), float64(moved)))
}

// shared names a host on which both sides were seen, "" if there is none.
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

// unfair says that clients were served unequally, at the load at which they were most; "" if they were not.
func unfair(curve *steps.Curve) string {
	var worst *steps.Working
	for _, s := range curve.Steps {
		if s.Unequal && s.Excluded == "" && (worst == nil || *s.Fairness < *worst.Fairness) {
			worst = s
		}
	}
	if worst == nil {
		return ""
	}
	return fmt.Sprintf("at %s the service served clients unequally, as if only %s of them had been served (Jain's fairness index %.2f): "+
		"latencies are mostly those of the clients that were served more", curve.At(worst),
		unit.Count(math.Round(*worst.Fairness*worst.ActiveClients)), *worst.Fairness)
}
