package coordinator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"weir/internal/require"
	"weir/lab/labtest"
	"weir/loadtest/export/exporttest"
	"weir/transfer"
	"weir/transfer/transfertest"
)

// A scrape contains the metrics of one response, by name.
type scrape map[string]*dto.MetricFamily

// scrape requests the metrics.
func (h *service) scrape() scrape {
	h.T.Helper()
	return exporttest.Families(h.T, metricsOf(h.T, h))
}

// sum returns the sum of the values of a metric with these labels: name, value, ...
func (s scrape) sum(name string, labels ...string) float64 {
	sum, _ := exporttest.Sum(s["weir_transfer_"+name], labels...)
	return sum
}

// The metrics of a coordinator whose agents have moved files agree with its records.
func TestMetricsOfTransfers(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "promtool")
	each(t, func(t *testing.T, conf Config) {
		conf.Plain = true
		h := start(t, conf)
		a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", nil)
		a.Write("/store/run1", 20, 300_000)
		h.Scan("/store/run1", "A", "/store/run1")
		require.NoError(t, os.Remove(filepath.Join(a.Root, "store/run1/f3")))
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Share: "production"})
		require.NoError(t, err)
		if q = h.WaitEnd(q.ID); q.Status != transfer.Partial || q.Count.Done != 19 {
			h.Log(q.ID)
			t.Fatalf("%+v", q)
		}
		attempts, err := h.Client.Attempts(t.Context(), q.ID, 0, 0)
		require.NoError(t, err)
		var failed, bad, moved float64
		for _, one := range attempts {
			if moved += float64(one.Moved); one.Fault != "" {
				failed++
			}
			if one.Fault == transfer.SourceBad {
				bad++
			}
		}
		m := h.scrape()
		pair := []string{"source", "A", "dest", "B"}
		for _, one := range []struct {
			name   string
			labels []string
			want   float64
		}{
			{"attempts_total", append(pair, "outcome", "done"), 19},
			{"attempts_total", append(pair, "outcome", "failed"), failed},
			{"attempts_total", append(pair, "class", "source"), bad},
			{"activity_attempts_total", []string{"activity", "production", "outcome", "done"}, 19},
			{"done_bytes_total", pair, 19 * 300_000},
			{"activity_done_bytes_total", []string{"activity", "production"}, 19 * 300_000},
			{"moved_bytes_total", pair, moved},
			{"attempt_seconds", pair, 19},
			{"queue_seconds", []string{"activity", "production"}, 20},
			{"files_ended_total", []string{"dest", "B", "state", "done"}, 19},
			{"files_ended_total", []string{"dest", "B", "state", "failed"}, 1},
			{"requests_ended_total", []string{"status", "partial"}, 1},
			{"link_copies", pair, 0},
			{"link_limit_cause", pair, 1},
			{"sites", []string{"kind", "agent", "state", "up"}, 2},
			{"site_slots", []string{"site", "B"}, 8},
			{"waiting_files", nil, 0},
			{"coordinator_info", nil, 1},
		} {
			if got := m.sum(one.name, one.labels...); got != one.want {
				t.Errorf("%s %q: %v, want %v", one.name, one.labels, got, one.want)
			}
		}
		if bad == 0 || m.sum("link_limit", pair...) == 0 {
			t.Errorf("%v attempts with a missing source, limit %v", bad, m.sum("link_limit", pair...))
		}
		b.Stop()
		a.Write("/store/run2", 7, 1000)
		h.Scan("/store/run2", "A", "/store/run2")
		if q, err = h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "B"}); err != nil {
			t.Fatal(err)
		}
		at := []string{"dest", "B", "activity", "default"}
		until(t, "the files wait", func() bool { m = h.scrape(); return m.sum("waiting_files", at...) == 7 })
		first := m.sum("oldest_waiting_seconds", at...)
		until(t, "they get older", func() bool { return h.scrape().sum("oldest_waiting_seconds", at...) > first })
		if conf.DB == "" {
			dashboards(t, h)
		}
		if _, err := h.Client.Cancel(t.Context(), q.ID, "enough"); err != nil {
			t.Fatal(err)
		}
		until(t, "they are cancelled", func() bool { return h.scrape().sum("files_ended_total", "state", "cancelled") == 7 })
		if n := h.scrape().sum("requests_ended_total", "status", "cancelled"); n != 1 {
			t.Errorf("%v cancelled requests", n)
		}
	})
}

// A limit that falls because copies fail is reported by the API with its reason, and counted.
func TestLimitChanges(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "promtool")
	h := start(t, Config{Plain: true})
	_, b, _ := h.pair(50)
	var changes []transfer.LimitChange
	until(t, "the limit falls", func() bool {
		var all []transfer.Outcome
		for _, l := range b.Work().Leases {
			o := transfertest.Verified(l)
			o.Fault, o.Reason, o.Verified, o.Moved = transfer.Transient, "the connection was reset", false, 0
			all = append(all, o)
		}
		if _, err := b.Report(all...); err != nil {
			t.Fatal(err)
		}
		var err error
		if changes, err = h.Client.LimitChanges(t.Context(), "A", "B", 0); err != nil {
			t.Fatal(err)
		}
		return len(changes) > 0
	})
	c := changes[0]
	if c.ID != 1 || c.Cause != transfer.LimitFailures || c.Limit >= c.Before || !strings.Contains(c.Why, "failed") {
		t.Errorf("%+v", c)
	}
	if n := h.scrape().sum("link_limit_changes_total", "source", "A", "dest", "B", "direction", "down", "cause", "failures"); n < 1 {
		t.Errorf("%v changes", n)
	}
	if none, err := h.Client.LimitChanges(t.Context(), "A", "C", 0); err != nil || len(none) > 0 {
		t.Errorf("to C: %+v, %v", none, err)
	}
}
