package run

import (
	"slices"
	"testing"

	"weir/serve"
	"weir/workload"
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
