package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weir/loadtest/measure"
)

// Jobs of the cases below read their events in pages, one at a time.
const (
	eventSize = 40 << 10
	pageSize  = 8 << 10
	perEvent  = eventSize / pageSize
)

// jobs returns a load of jobs that each read a number of events; more has further keys of
// workload.job.
func (r *rig) jobs(srv server, clients, events int, more string) load {
	l := r.reads(srv, theFile, clients)
	l.kind, l.settle, l.drain = "job", 0, 100*time.Millisecond
	l.more = fmt.Sprintf("  plain: true\n  job: {events: %d, event_size: %dB, page: %dB, %s}\n", events, eventSize, pageSize, more)
	return l
}

// pagesServer starts weir's own server, or an XRootD, with a file of a size.
func (r *rig) pagesServer(scheme string, size int64) server {
	if scheme == "root" {
		return r.xrootd(1, size)
	}
	dir := r.path("pages")
	r.must(os.Mkdir(dir, 0o755))
	r.file(filepath.Join(dir, theFile), size)
	return r.serve(dir)
}

// pages compares the page reads of weir with the barest loop of the same reads.
func pages(scheme string, clients int, s scale) comparison {
	events := min(1600, s.pages/perEvent/clients) // of a job
	from := map[string]string{"http": "weir serve", "root": "XRootD"}[scheme]
	jobs := s.pages / perEvent / events / clients
	each := jobs * events * perEvent
	who := "one job after the other"
	if clients > 1 {
		who = fmt.Sprintf("%d jobs at once", clients)
	}
	return comparison{
		name:  fmt.Sprintf("pages-%s-%d", scheme, clients),
		title: fmt.Sprintf("Pages of 8 KiB, %s, %s", scheme, who),
		about: fmt.Sprintf("%d pages of 8 KiB from %s, one request at a time: jobs of %d events of 40 KiB without compute time, from start "+
			"to report.", clients*each, from, events),
		metrics: []metric{rate, requestCPU, failed},
		bars:    []bar{{metric: requestCPU, a: "weir", b: "bare", limit: 1.5}, {metric: failed, a: "weir", limit: 0}},
		setup: func(r *rig) []side {
			srv := r.pagesServer(scheme, 128<<20)
			l := r.jobs(srv, clients, events, "compute: 0s")
			l.jobs, l.hold = jobs, time.Minute
			return []side{r.weirSide(l, 0), r.bareSide(srv, "page", clients, "-count", fmt.Sprint(each))}
		},
	}
}

// computing measures the delay with which jobs wake up that sleep in place of computing, while they
// and the server keep the machine busy with pages.
func computing(jobs int, judged bool, s scale) comparison {
	var bars []bar
	if judged {
		const turns = "Jobs and server occupy both cores, so a thread that wakes up waits for a time slice of milliseconds."
		for _, a := range []string{"weir", "weir, exponential", "weir, busy"} {
			bars = append(bars, bar{metric: lateHigh, a: a, limit: 0.005, why: turns})
		}
	}
	return comparison{
		name:  fmt.Sprintf("computing-%d", jobs),
		title: fmt.Sprintf("Computing of %d jobs in one process", jobs),
		about: fmt.Sprintf("%d jobs in one process read events of 40 KiB in pages of 8 KiB from weir serve and sleep 100 ms per event, "+
			"constant or exponential; \"busy\" computes for 10 ms, which occupies all cores. Late is the actual minus the planned end of "+
			"compute time.", jobs),
		metrics: []metric{lateMedian, lateHigh, rate, failed},
		bars:    bars,
		setup: func(r *rig) []side {
			srv := r.pagesServer("http", 128<<20)
			var sides []side
			for _, c := range []struct{ name, compute string }{
				{"weir", "compute: 100ms"}, {"weir, exponential", "compute: {exponential: 100ms}"}, {"weir, busy", "compute: 10ms"},
			} {
				l := r.jobs(srv, jobs, 1000, c.compute)
				l.settle = min(time.Second, s.hold)
				sides = append(sides, side{c.name, func() (figures, error) {
					o, err := r.run(l, nil)
					if err != nil {
						return nil, err
					}
					sum := o.sum(measure.Measured)
					if sum.Late.Count() == 0 {
						return nil, errors.New("no job computed")
					}
					return figures{
						lateMedian: sum.Late.Quantile(.5), lateHigh: sum.Late.Quantile(.99),
						rate: float64(sum.Done) / l.hold.Seconds(), failed: float64(o.failures()),
					}, nil
				}})
			}
			return sides
		},
	}
}

// jobsMemory measures the memory of a job that mostly computes, with and without read-ahead.
func jobsMemory(s scale) comparison {
	return comparison{
		name:  "jobs-memory",
		title: "Memory of a job",
		about: fmt.Sprintf("%d jobs in one process, each with a connection, sleep %v per event of 40 KiB, without and with read-ahead of one "+
			"event; measured as in [memory of a client](#memory-of-a-client).", s.crowd, s.think),
		metrics: []metric{clients, resident, rate, failed},
		bars:    []bar{{metric: failed, a: "weir", limit: 0}, {metric: failed, a: "weir, read-ahead", limit: 0}},
		setup: func(r *rig) []side {
			srv := r.smallServer(r.crowded(), 64<<20)
			var sides []side
			for _, c := range []struct{ name, more string }{{"weir", ""}, {"weir, read-ahead", ", read_ahead: 40KiB"}} {
				sides = append(sides, r.residentSide(c.name, r.crowd, func(n int) load {
					l := r.jobs(srv, n, 1000, "compute: "+s.think.String()+c.more)
					l.ramp, l.settle, l.flags = s.think, s.think/5, []string{"--processes", "1"}
					return l
				}))
			}
			return sides
		},
	}
}
