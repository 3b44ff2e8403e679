package metrics

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"weir/internal/require"
	"weir/lab/labtest"
	"weir/loadtest/export/exporttest"
	"weir/transfer"
	"weir/transfer/queue"
)

func attempt(source, dest, activity string, fault transfer.ErrorClass) queue.EndedAttempt {
	a := queue.EndedAttempt{Activity: activity, Waited: 3 * time.Second}
	a.Source, a.Dest, a.Fault, a.Size, a.Begin = source, dest, fault, 10, time.Unix(1e9, 0)
	a.End = a.Begin.Add(2 * time.Second)
	return a
}

// page returns the metrics of counters.
func page(t *testing.T, c *Counters, links ...transfer.Link) map[string]*dto.MetricFamily {
	t.Helper()
	p := NewPage()
	c.Write(p, links)
	return exporttest.Families(t, p.Text())
}

// The number of series is bounded and no attempt is lost, regardless of the number of pairs,
// activities and classes. A pair that was idle is replaced by a new pair.
func TestBounds(t *testing.T) {
	now := time.Unix(1e9, 0)
	c := NewCounters(func() time.Time { return now })
	var end queue.Ended
	for i := range 2 * MaxPairs {
		end.Attempts = append(end.Attempts, attempt(fmt.Sprint("s", i), "D", fmt.Sprint("activity \"", i), ""))
	}
	end.Attempts = append(end.Attempts, attempt("s0", "D", "x", "an invented class\n"), attempt("s0", "D", "x", transfer.Checksum))
	end.Files = map[queue.FileEnd]int64{}
	for i := range 2 * MaxSites {
		end.Files[queue.FileEnd{Dest: fmt.Sprint("d", i), State: transfer.Done}] = 1
	}
	c.Ended(end)
	all := page(t, c)
	for name, want := range map[string][2]float64{ // sum and series
		"attempts_total": {2*MaxPairs + 2, MaxPairs + 3}, "activity_attempts_total": {2*MaxPairs + 2, MaxActivities + 3},
		"done_bytes_total": {20 * MaxPairs, MaxPairs + 1}, "attempt_seconds": {2 * MaxPairs, MaxPairs + 1},
		"queue_seconds": {2*MaxPairs + 2, MaxActivities + 1}, "files_ended_total": {2 * MaxSites, MaxSites + 1},
	} {
		if n, series := exporttest.Sum(all[prefix+name]); n != want[0] || float64(series) != want[1] {
			t.Errorf("%s: %v in %d series, want %v", name, n, series, want)
		}
	}
	if n, _ := exporttest.Sum(all[prefix+"attempts_total"], "source", Other, "dest", Other, "outcome", "done"); n != MaxPairs {
		t.Errorf("%v attempts of other pairs", n)
	}
	if n, _ := exporttest.Sum(all[prefix+"attempts_total"], "source", "s0", "class", Other); n != 1 {
		t.Errorf("%v attempts with an unknown class", n)
	}
	now = now.Add(idlePair + time.Minute)
	c.Ended(queue.Ended{Attempts: []queue.EndedAttempt{attempt("new", "D", "x", "")}})
	all = page(t, c)
	if n, series := exporttest.Sum(all[prefix+"done_bytes_total"], "source", "new"); n != 10 || series != 1 {
		t.Errorf("the new pair: %v in %d series", n, series)
	}
	if _, series := exporttest.Sum(all[prefix+"done_bytes_total"]); series != MaxPairs+1 {
		t.Errorf("%d series", series)
	}
}

// Links beyond the bound have gauges that add up only.
func TestLinks(t *testing.T) {
	c := NewCounters(time.Now)
	var links []transfer.Link
	for i := range 2 * MaxPairs {
		links = append(links, transfer.Link{Source: fmt.Sprint(i), Dest: "D", Active: 2, Limit: 3, Rate: 4, Cause: transfer.LimitTrial})
	}
	c.Changed(transfer.LimitChange{Source: "0", Dest: "D", Before: 3, Limit: 2, Cause: transfer.LimitFailures})
	c.Moved("0", "D", 7)
	c.Moved("0", "D", -7)
	all := page(t, c, links...)
	for name, want := range map[string][2]float64{
		"link_copies": {4 * MaxPairs, MaxPairs + 1}, "link_limit": {3 * MaxPairs, MaxPairs}, "link_limit_cause": {MaxPairs, MaxPairs},
		"moved_bytes_total": {7, MaxPairs},
	} {
		if n, series := exporttest.Sum(all[prefix+name]); n != want[0] || float64(series) != want[1] {
			t.Errorf("%s: %v in %d series, want %v", name, n, series, want)
		}
	}
	if n, _ := exporttest.Sum(all[prefix+"link_limit_changes_total"], "source", "0", "direction", "down", "cause", "failures"); n != 1 {
		t.Errorf("%v changes", n)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for _, s := range []float64{0, 0.1, 0.11, 86400, 1e9} {
		h.add(s)
	}
	var text strings.Builder
	h.write(&text, "x_seconds", "")
	for _, row := range []string{`x_seconds_bucket{le="0.1"} 2`, `x_seconds_bucket{le="0.5"} 3`, `x_seconds_bucket{le="86400"} 4`,
		`x_seconds_bucket{le="+Inf"} 5`, `x_seconds_count 5`} {
		if !strings.Contains(text.String(), row+"\n") {
			t.Errorf("%s is not in\n%s", row, text.String())
		}
	}
}

// The alert rules fire for their conditions, and not otherwise.
func TestAlerts(t *testing.T) {
	labtest.Need(t, "promtool")
	if said, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", "testdata/alerts.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v: %s", err, said)
	}
}

// The table in docs/metrics.md is generated from the metrics.
func TestMetricsAreDocumented(t *testing.T) {
	const path, mark, next = "../../docs/metrics.md", "<!-- transfer metrics -->\n", "<!-- metrics -->\n"
	text := require.File(t, path)
	head, rest, ok := strings.Cut(string(text), mark)
	_, tail, ok2 := strings.Cut(rest, next)
	if !ok || !ok2 {
		t.Fatalf("%s has no line %s, or no %s after it", path, mark, next)
	}
	var b strings.Builder
	b.WriteString("\n| metric | type | description |\n|---|---|---|\n")
	for _, m := range Table() {
		kind := string(m.Type)
		if len(m.Labels) > 0 {
			kind += " by `" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Name, kind, m.Help)
	}
	want := head + mark + b.String() + "\n" + next + tail
	if os.Getenv("WEIR_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	} else if want != string(text) {
		t.Errorf("%s differs from the metrics: WEIR_UPDATE=1 writes it", path)
	}
}
