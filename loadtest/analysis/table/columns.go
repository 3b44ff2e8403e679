package table

import (
	"slices"
	"strings"
	"unicode"
)

// words splits the name of a column into lower-case words.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '%' })
}

// recognize finds the columns that were not chosen by the options, from their names.
func (t *Table) recognize(header line, places map[Kind]int, taken map[int]Kind) error {
	candidates := map[Kind][]int{}
	for i, c := range header.cells {
		if _, ok := taken[i]; ok {
			continue
		}
		if k, ok := kindOf(c.text); ok {
			candidates[k] = append(candidates[k], i)
		} else {
			t.Spare = append(t.Spare, c.text)
		}
	}
	for k := range kinds {
		all := candidates[k]
		if _, chosen := places[k]; chosen || len(all) == 0 {
			for _, i := range all {
				t.Spare = append(t.Spare, header.cells[i].text)
			}
			continue
		}
		if len(all) > 1 { // the name that weir itself writes has priority
			own := slices.IndexFunc(all, func(i int) bool { return ownName(k, header.cells[i].text) })
			if own < 0 {
				c := header.cells[all[1]]
				return t.wrong(position{header.number, c.column}, "%s and %s may both be the column for %s: choose one with --%s, "+
					"by name or by number (%d or %d)", quote(header.cells[all[0]].text), quote(c.text), k, k, all[0]+1, all[1]+1)
			}
			all = all[own : own+1]
		}
		places[k] = all[0]
	}
	for k, i := range places {
		t.Names[k] = k.String()
		if header.cells != nil {
			t.Names[k] = header.cells[i].text
		}
	}
	return nil
}

// ownName reports whether a column has the name that curve.csv uses for the kind, or the plainest
// possible name.
func ownName(k Kind, name string) bool {
	own := map[Kind][]string{
		Clients: {"active_clients", "clients"}, Throughput: {"throughput_bytes_per_second", "throughput"},
		Rate:    {"operations_per_second", "rate"},
		Latency: {"latency_mean_seconds", "latency"}, Errors: {"errors"}, ErrorRatio: {"error_ratio"}, Done: {"done"}, Time: {"time"},
		Step: {"step"},
	}[k]
	return slices.Contains(own, strings.ToLower(name))
}

// unbracketed returns a name without its part in brackets: there, min means minute.
func unbracketed(name string) string {
	if i := strings.IndexAny(name, "(["); i >= 0 {
		return name[:i]
	}
	return name
}

// kindOf determines the kind of a column from its name. ok is false if the name is unknown, or if
// the column is a part, an extreme or a quotient of the kind's value.
func kindOf(name string) (k Kind, ok bool) {
	all := words(name)
	has := func(some ...string) bool {
		return slices.ContainsFunc(all, func(w string) bool { return slices.Contains(some, w) })
	}
	clients := []string{"clients", "client", "jobs", "job", "n", "users", "user", "threads", "thread", "concurrency", "concurrent",
		"processes", "streams", "vus"}
	if i := slices.Index(all, "per"); i >= 0 && i+1 < len(all) && slices.Contains(append(clients, "client", "file", "server"), all[i+1]) {
		return 0, false
	}
	if slices.Contains(words(unbracketed(name)), "min") || has("low", "high", "max", "minimum", "maximum", "std", "stddev", "stdev", "sd",
		"p50", "p90", "p95", "p99", "p999", "median",
		"planned", "target", "batches", "drift", "class", "cpu", "missed", "retried", "canceled", "late", "byte", "connect", "login", "redirect",
		"steady", "sessions") {
		return 0, false
	}
	_, isSpeed := speedIn(name)
	ratio := has("ratio", "rate", "share", "fraction", "percent", "%")
	switch {
	case has("errors", "error", "failed", "failures", "failure"):
		if ratio {
			return ErrorRatio, true
		}
		return Errors, true
	case has("throughput", "bandwidth", "goodput") || isSpeed:
		return Throughput, true
	case has("latency", "wall", "wallclock", "wct", "response", "elapsed", "rtt"):
		return Latency, true
	case has("ops", "iops", "tps", "rps", "qps", "operations", "requests", "files", "rate") &&
		(has("rate", "iops", "tps", "rps", "qps", "s", "sec", "second")):
		return Rate, true
	case has("done", "completed", "succeeded"):
		return Done, true
	case has("step", "batch", "series", "run"):
		return Step, true
	case has(clients...):
		return Clients, true
	case has("time", "timestamp", "date"), len(all) == 1 && has("t", "s", "sec", "seconds"):
		return Time, true
	}
	return 0, false
}
