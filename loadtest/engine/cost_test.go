package engine

import (
	"syscall"
	"testing"
	"time"

	"weir/internal/unit"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
)

// oneClient returns a client of a run that has not begun.
func oneClient(t *testing.T, work workload.Work) (*clientRunner, *client) {
	t.Helper()
	conf, _ := closed(t, "simulated://x?servers=100&service=0ms&dist=constant&files=100x1MiB", work,
		scenario.Step{Clients: 1, Duration: seconds(1)})
	for i := range conf.Files {
		conf.Files[i].Size = 1 << 20
	}
	conf.Pacer = Timers()
	r, err := newRun(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.kill(); r.checker.close() })
	c := &client{}
	if err := r.runner.open(c); err != nil {
		t.Fatal(err)
	}
	return r.runner, c
}

// The existence of jobs adds no allocation to a task without jobs, and a job's requests cost the
// same as reads: the allocations of a job do not grow with them.
func TestTasksAllocateNothing(t *testing.T) {
	l, c := oneClient(t, workload.Work{Kind: "read", Session: "kept", Pick: "random"})
	task := func() {
		c.work.Next(c.rand, &c.task)
		l.do(c, -1)
	}
	task()
	if n := testing.AllocsPerRun(1000, task); n > 0 || c.computer != nil {
		t.Errorf("a read allocates %v times, want 0; its client has a computer: %v", n, c.computer != nil)
	}
	for name, job := range map[string]workload.Job{
		"direct": {Events: 1000, Event: 100, Page: 50}, "ahead": {Events: 1000, Event: 100, Page: 50, Ahead: 50},
		"vector": {Events: 1000, Event: 100, Page: 10, Vector: 5},
	} {
		l, c := oneClient(t, jobbing(job))
		task := func() {
			c.work.Next(c.rand, &c.task)
			l.do(c, -1)
		}
		task()
		if n := testing.AllocsPerRun(5, task); n > 20 {
			t.Errorf("%s: a job of 2000 requests allocates %v times, want a few", name, n)
		}
	}
}

// BenchmarkLoop measures the engine's time for a task of each of 64 clients, without a pause after
// it and with a pause in which the client has no goroutine.
func BenchmarkLoop(b *testing.B) {
	const clients = 64
	for _, think := range []time.Duration{0, time.Millisecond} {
		b.Run("think="+think.String(), func(b *testing.B) {
			conf, _ := closed(b, "simulated://x?servers=100&service=0ms&dist=constant&files=100x1MiB", workload.Work{Kind: "read",
				Session: "kept", Pick: "random", Think: workload.Span{Fixed: unit.Duration(think)}}, scenario.Step{})
			p, err := NewPacer()
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			conf.Pacer = p
			r, err := newRun(b.Context(), conf)
			if err != nil {
				b.Fatal(err)
			}
			before := cpuTime(b)
			r.pool.step(max(b.N/clients, 1))
			r.pool.resize(clients)
			r.pool.wait()
			b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
			r.pool.exec.close()
			r.kill()
			r.checker.close()
		})
	}
}

// cpuTime returns the processor time of this process.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
