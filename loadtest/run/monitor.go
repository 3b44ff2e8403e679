package run

import (
	"context"
	"errors"
	"slices"

	"weir/loadtest/cluster"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// startMonitor begins to monitor the hosts of the plan, and the links. release closes the service
// through which it queried the servers, after the Watch was stopped.
func (r *session) startMonitor(ctx context.Context) (w *monitor.Watch, release func(), err error) {
	servers, release := r.reporter(ctx)
	sink := samples{r.out, r.view, r.find}
	o := monitor.Options{Target: r.Plan.Target, Others: r.Plan.Others, Children: true, Reporter: servers, Apart: r.links.pids(),
		Balancer: r.Plan.Balancer}
	o.Scratch = r.copies.Device
	if r.workers != nil {
		o.With, o.Scratch = r.workers.Pids, r.workers.ScratchDevice
	}
	if w, err = monitor.Start(ctx, monitoredHosts(r.Plan), o, sink); err != nil {
		release()
		return nil, nil, err
	}
	r.links.watched(sink)
	return w, release, nil
}

// monitoredHosts returns the machines that this process monitors. If the clients are on other
// machines, no monitored machine is a client.
func monitoredHosts(p *scenario.Plan) []monitor.Host {
	if !p.On.Batch.Elsewhere() {
		return p.Hosts
	}
	hosts := slices.Clone(p.Hosts)
	for i := range hosts {
		h := &hosts[i]
		switch {
		case h.NodeExporter+h.XRootDReport != "":
		case h.Role == "client":
			h.Role = "other"
		case h.Role == "both":
			h.Role = "server"
		}
	}
	return hosts
}

// reporter returns the service that queries the servers of the target for their statistics, nil if
// their protocol has no statistics, and a function that closes it. If external programs make the
// load, weir's own driver of the target's protocol queries, with the same credentials.
func (r *session) reporter(ctx context.Context) (asks monitor.Reporter, release func()) {
	release = func() {}
	if own, ok := r.engine.Service.(storage.Reporter); ok {
		return own, release
	}
	service, err := cluster.OpenOwnClient(ctx, r.Plan, r.drivers)
	switch {
	case err != nil:
		return failedReporter{err}, release
	case service == nil:
		return nil, release
	}
	release = func() { _ = service.Close() } // nothing was written with it
	if own, ok := service.(storage.Reporter); ok {
		return own, release
	}
	release()
	return nil, func() {}
}

// failedReporter represents servers that cannot be queried, and returns the reason.
type failedReporter struct{ err error }

func (f failedReporter) Servers(context.Context) ([]string, error)      { return nil, f.err }
func (f failedReporter) Report(context.Context, string) ([]byte, error) { return nil, f.err }

// samples takes the hosts' samples to the run directory and the view.
type samples struct {
	out  *results.Writer
	view View
	find *finder // nil: this is no search
}

// Sample implements monitor.Sink.
func (s samples) Sample(v *monitor.Sample) error {
	if s.find != nil {
		s.find.Sample(v)
	}
	return errors.Join(s.out.Sample(v), s.view.Sample(v))
}

// tee takes intervals and events to the run directory and the view, and steps to
// the monitor and the links.
type tee struct {
	out    *results.Writer
	view   View
	watch  *monitor.Watch
	links  *links // nil: no links are emulated
	begins func() // called with each step
}

// Interval implements measure.Sink.
func (t *tee) Interval(v *measure.Interval) error {
	if v.Server != "" {
		t.watch.Serves(v.Server)
	}
	return errors.Join(t.out.Interval(v), t.view.Interval(v))
}

// Event implements measure.Sink.
func (t *tee) Event(e measure.Event) error {
	if e.Kind == measure.EventStep {
		t.begins()
		t.links.begin(e.Step)
		t.watch.SetStep(e.Step)
	}
	return errors.Join(t.out.Event(e), t.view.Event(e))
}
