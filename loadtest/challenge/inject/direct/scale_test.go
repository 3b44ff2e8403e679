package direct

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
)

// 2,000 links have 4,000 copies in flight at once, with a marker a second each, in little memory and
// CPU time. Cancel ends all of them within 10 s.
func TestScale(t *testing.T) {
	tier.Quiet(t, "2,000 links and 4,000 copies at once")
	const links, copies, size = 2000, 4000, 1 << 30
	active := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "COPY" {
			return
		}
		w.WriteHeader(http.StatusAccepted)
		for moved := int64(1); r.Context().Err() == nil; moved += 1 << 20 {
			_ = tpc.Marker{At: time.Now(), Moved: moved}.Write(w)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
		}
	}))
	defer active.Close()
	var sites []challenge.Site
	for i := range 100 {
		sites = append(sites, challenge.Site{Name: fmt.Sprintf("S%d", i), URL: active.URL + fmt.Sprintf("/s%d", i)})
	}
	every := make([]challenge.Link, links)
	for i := range every {
		every[i] = challenge.Link{From: sites[i%100].Name, To: sites[(i+1+i/100)%100].Name}
	}
	begun := time.Now()
	r := newRig(t, sites, every...)
	opened := time.Since(begun)
	var all []inject.Copy
	ids := make([]int64, copies)
	for i := range ids {
		ids[i] = int64(i)
		all = append(all, inject.Copy{ID: ids[i], Link: i % links, Source: inject.File{Path: "f", Size: size}, Dest: fmt.Sprintf("c%d", i)})
	}
	begun = time.Now()
	require.NoError(t, r.in.Start(t.Context(), all))
	started := time.Since(begun)
	require.Eventually(t, "all copies run", func() bool {
		for _, id := range ids {
			if all := r.reports(id); all[len(all)-1].State != inject.Running {
				return false
			}
		}
		return true
	})
	running, cpu := time.Since(begun), cpuTime(t)
	seen := len(r.reports(0))
	require.Eventually(t, "five more markers arrive", func() bool { return len(r.reports(0)) >= seen+5 })
	cpu = cpuTime(t) - cpu
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	begun = time.Now()
	require.NoError(t, r.in.Cancel(t.Context(), ids))
	for _, id := range ids {
		if last := r.final(id); last.State != inject.Cancelled {
			t.Fatalf("%+v", last)
		}
	}
	if took := time.Since(begun); took > 10*time.Second || started > 5*time.Second || opened > 5*time.Second {
		t.Errorf("opened in %v, started in %v, cancelled in %v", opened, started, took)
	}
	t.Logf("opened in %v, requested in %v, running after %v, %v of CPU time in some 5 s with the servers, %d MB of heap, cancelled in %v",
		opened, started, running, cpu, m.HeapInuse>>20, time.Since(begun))
}

func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
