package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/unit"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/serve"
)

func TestBuiltinFiles(t *testing.T) {
	for _, c := range []struct {
		job  *workload.Job
		want []string
	}{
		{nil, []string{"--synthetic", "1000x1MiB"}},
		{&workload.Job{Events: 3000, Event: 40 << 10}, []string{"--events", "17x3000x40960B"}},
		{&workload.Job{Events: 10_000, Event: 40 << 10}, []string{"--events", "5x10000x40960B"}},
		{&workload.Job{Events: 50_000, Event: 1}, []string{"--events", "4x50000x1B"}},
	} {
		got := serverFiles(workload.Work{Job: c.job})
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.job, got, c.want)
		}
		if c.job == nil {
			continue
		}
		if set, err := serve.ParseEvents(got[1]); err != nil || set.Size != int64(c.job.Events)*int64(c.job.Event) {
			t.Errorf("%q: %+v, %v", got[1], set, err)
		}
	}
}

func TestServerCost(t *testing.T) {
	job := &workload.Job{Page: 8 << 10}
	for want, p := range map[string]scenario.Plan{
		"": {Work: workload.Work{Job: job}},
		"--cpu-per-page 300µs --threads 2 --page 8192B": {Server: scenario.Server{PageCPU: unit.Duration(300 * time.Microsecond), Threads: 2},
			Work: workload.Work{Job: job}},
		"--cpu-per-page 1ms --threads 1": {Server: scenario.Server{PageCPU: unit.Duration(time.Millisecond), Threads: 1}},
		"--cpu 1 --cpu 3":                {Server: scenario.Server{CPU: []int{1, 3}}},
	} {
		if got := strings.Join(serverCost(&p), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
