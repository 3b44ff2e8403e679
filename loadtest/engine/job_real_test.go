package engine

import (
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/xrootd"
)

// A director sets the scene for the next act as soon as the one before is over.
type director struct {
	notes
	t    *testing.T
	acts []act
	all  measure.Interval
	wg   sync.WaitGroup
}

// An act is over when the event that it waits for has come, after which it is cleared up.
type act struct {
	name  string
	until func(v *measure.Interval) bool
	then  func()
}

func (d *director) Interval(v *measure.Interval) error {
	d.all.Add(v)
	if len(d.acts) > 0 && d.acts[0].until(v) {
		d.t.Logf("%s: %d jobs done, %d failed, %d crashed", d.acts[0].name, d.all.Ended, d.all.JobsFailed, d.all.Crashed)
		d.wg.Go(d.acts[0].then)
		d.acts = d.acts[1:]
	}
	return d.notes.Interval(v)
}

// Jobs on a real XRootD that hangs, goes on, is killed, and comes back: jobs that wait for too long
// have crashed, jobs whose connection breaks have failed, and their clients go on with the next
// jobs.
func TestJobsOnAServerThatHangsAndDies(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{})
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	service, err := xrootd.Driver().Open(t.Context(), storage.Target{URL: u})
	require.NoError(t, err)
	defer func() { _ = service.Close() }()
	work := jobbing(workload.Job{Events: 20, Event: 40 << 10, Page: 8 << 10, Compute: workload.Span{Fixed: seconds(.005)}})
	work.Timeout, work.Verify = seconds(1), .1
	p := &scenario.Plan{
		Model: "closed", Driver: "xrootd", Target: s.URL, Work: work, Seed: 7, GracefulStop: seconds(5),
		Steps: []scenario.Step{{Number: 1, Clients: 5, Duration: seconds(120)}},
		Files: scenario.Files{Make: &scenario.Make{Count: 3, Size: workload.Dist{Fixed: 1 << 20}}},
	}
	finish := make(chan struct{})
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	d := &director{t: t, acts: []act{
		{"a quiet start", func(v *measure.Interval) bool { return v.Ended > 0 }, func() { must(s.Signal(syscall.SIGSTOP)) }},
		{"it hangs", func(v *measure.Interval) bool { return v.Crashed > 0 }, func() { must(s.Signal(syscall.SIGCONT)) }},
		{"it goes on", func(v *measure.Interval) bool { return v.Ended > 0 }, s.Kill},
		{"it is dead", func(v *measure.Interval) bool { return v.JobsFailed > 0 }, func() { must(s.Restart(t.Context())) }},
		{"it is back", func(v *measure.Interval) bool { return v.Ended > 0 }, func() { close(finish) }},
	}}
	c := Config{Plan: p, Service: service, Folder: "weir-test", Sink: d, Manifest: &remembered{}, Finish: finish}
	if c.Files, err = Prepare(t.Context(), c, nil, nil); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	require.NoError(t, Run(t.Context(), c))
	d.wg.Wait()
	if len(d.acts) > 0 {
		t.Fatalf("after %v: %d acts never ended, the first is: %s; %+v", time.Since(begin), len(d.acts), d.acts[0].name, d.all.Failed)
	}
	v := &d.all
	if v.Crashed != v.Failed[storage.Timeout] || v.JobsFailed != v.Errors()-v.Failed[storage.Timeout] || v.Started < v.Ended+
		v.JobsFailed+v.Crashed {
		t.Errorf("%d begun, %d done, %d failed, %d crashed; failed requests %v", v.Started, v.Ended, v.JobsFailed, v.Crashed, v.Failed)
	}
	if v.Verified == 0 || v.Events < 20*v.Ended {
		t.Errorf("%d requests verified, %d events in %d jobs", v.Verified, v.Events, v.Ended)
	}
}
