package monitor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"weir/internal/require"
)

// BenchmarkLook prints the CPU time of looks at 1 Hz: this machine with ten
// processes watched, and a host by a page of a node_exporter's size.
func BenchmarkLook(b *testing.B) {
	pids := make([]int, 0, 10)
	for range 10 {
		pids = append(pids, idle(b))
	}
	b.Run("here", func(b *testing.B) {
		l := newLocal(Host{}, Options{}, nil, newClock())
		defer l.close()
		bench(b, l)
	})
	b.Run("here with 10 processes", func(b *testing.B) {
		l := newLocal(Host{Pids: pids}, Options{}, nil, newClock())
		defer l.close()
		bench(b, l)
	})
	b.Run("page", func(b *testing.B) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, hostPage) }))
		defer srv.Close()
		p, err := newPage(Host{NodeExporter: srv.URL}, newClock())
		require.NoError(b, err)
		defer p.close()
		bench(b, p)
	})
}

func bench(b *testing.B, p probe) {
	var cost float64
	for range 20 { // past the looks that get to know the processes
		measured(context.Background(), p)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		res := measured(context.Background(), p)
		if res.sample == nil {
			b.Fatal(res.err)
		}
		cost += res.sample.Cost
		n++
	}
	b.ReportMetric(cost/float64(n)*1e6, "cpu-us/sample")
}

// idle starts a process that sleeps and returns its id.
func idle(b *testing.B) int {
	cmd := playCommand("idle")
	if _, err := cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	started(b, cmd)
	return cmd.Process.Pid
}

// TestCostIsMeasured: a sample's cost is a part of the process's usage, and far below the 1 % of a
// core that watching may take.
func TestCostIsMeasured(t *testing.T) {
	l := newLocal(Host{Pids: []int{os.Getpid()}}, Options{}, nil, newClock())
	defer l.close()
	var cost float64
	const looks = 50
	for range looks {
		if res := measured(context.Background(), l); res.sample != nil {
			if res.sample.Cost <= 0 {
				t.Fatal("a look cost nothing")
			}
			cost += res.sample.Cost
		}
	}
	t.Logf("%.0f us a look", cost/looks*1e6)
	if cost/looks > 0.01 {
		t.Errorf("a look took %v s of CPU time", cost/looks)
	}
}
