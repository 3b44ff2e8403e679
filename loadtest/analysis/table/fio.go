package table

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/loadtest/analysis/fact"
)

// A fioJob is an entry of fio's JSON output: a job, or all clones of a job with group_reporting.
// The fields are described in fio(1), section JSON OUTPUT; fio 2 has latencies in microseconds.
type fioJob struct {
	Name    string            `json:"jobname"`
	Group   int               `json:"groupid"`
	Runtime float64           `json:"job_runtime"` // milliseconds, the sum of all clones
	Error   int               `json:"error"`
	Options map[string]string `json:"job options"`
	Read    fioSide           `json:"read"`
	Write   fioSide           `json:"write"`
	Trim    fioSide           `json:"trim"`
}

type fioSide struct {
	Runtime float64  `json:"runtime"` // milliseconds
	IOPS    float64  `json:"iops"`
	KiB     float64  `json:"bw"`
	Bytes   *float64 `json:"bw_bytes"`
	IOs     float64  `json:"total_ios"`
	Nanos   *fioMean `json:"lat_ns"`
	Micros  *fioMean `json:"lat"`
}

type fioMean struct {
	Mean float64 `json:"mean"`
}

// latency returns the mean in seconds.
func (s *fioSide) latency() float64 {
	switch {
	case s.Nanos != nil:
		return s.Nanos.Mean / 1e9
	case s.Micros != nil:
		return s.Micros.Mean / 1e6
	}
	return 0
}

// A fioGroup sums the jobs of a group, which ran at the same time.
type fioGroup struct {
	sum          row
	seconds, ios float64 // of all operations
}

func (g *fioGroup) add(j *fioJob, clients float64) {
	g.sum[Clients] += clients
	if j.Error != 0 {
		g.sum[Errors]++
	}
	for _, s := range []*fioSide{&j.Read, &j.Write, &j.Trim} {
		bytes := s.KiB * 1024
		if s.Bytes != nil {
			bytes = *s.Bytes
		}
		g.sum[Throughput] += bytes
		g.sum[Rate] += s.IOPS
		g.sum[Done] += s.IOs
		g.seconds += s.latency() * s.IOs
		g.ios += s.IOs
	}
}

// readFio returns a row for each group of jobs. The load is the number of outstanding operations:
// jobs times their iodepth.
func readFio(jobs []fioJob, global map[string]string) (*result, error) {
	r := &result{}
	type place struct {
		group int
		name  string
	}
	entries := map[place]float64{} // of the clones of a job: one with group_reporting
	for _, j := range jobs {
		entries[place{j.Group, j.Name}]++
	}
	groups, works := map[int]*fioGroup{}, map[string]bool{}
	for _, j := range jobs {
		g := groups[j.Group]
		if g == nil {
			g = &fioGroup{sum: row{Clients: 0, Throughput: 0, Rate: 0, Errors: 0, Done: 0}}
			groups[j.Group] = g
			r.rows = append(r.rows, g.sum)
		}
		clients, err := j.clients(global, entries[place{j.Group, j.Name}])
		if err != nil {
			return nil, err
		}
		g.add(&j, clients)
		works[cmp.Or(j.Options["rw"], j.Options["readwrite"], global["rw"], global["readwrite"], "read")] = true
	}
	for _, g := range groups {
		if g.ios == 0 {
			return nil, errors.New("fio did no operation")
		}
		g.sum[Latency] = g.seconds / g.ios
	}
	if len(works) > 1 {
		r.notes = append(r.notes, fact.New("warning.different_work", "kinds", slices.Sorted(maps.Keys(works))))
	}
	r.add(Clients, "numjobs x iodepth", "")
	r.add(Throughput, "bw_bytes", "B/s")
	r.add(Rate, "iops", "/s")
	r.add(Latency, "lat_ns.mean", "ns")
	r.add(Errors, "jobs with an error", "")
	r.add(Done, "total_ios", "")
	return r, nil
}

// clients returns the number of outstanding operations of an entry, which is one of several of its
// job.
func (j *fioJob) clients(global map[string]string, entries float64) (float64, error) {
	option := func(name string) (float64, error) {
		text, ok := j.Options[name]
		if !ok {
			text, ok = global[name]
		}
		if !ok {
			return 1, nil
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("fio: %s=%s of job %s is not a number", name, text, j.Name)
		}
		return n, nil
	}
	n, err := option("numjobs")
	if err != nil {
		return 0, err
	}
	if entries >= n {
		n = 1 // each clone has its own entry
	}
	if longest := max(j.Read.Runtime, j.Write.Runtime, j.Trim.Runtime); j.Runtime > 1.3*n*longest && longest > 0 {
		return 0, fmt.Errorf("fio: job %s stands for several jobs of which only one is described: run fio without --group_reporting", j.Name)
	}
	if engine := cmp.Or(j.Options["ioengine"], global["ioengine"]); synchronous(engine) {
		return n, nil // one operation at a time, whatever iodepth is
	}
	depth, err := option("iodepth")
	return n * depth, err
}

// synchronous reports whether a job does one operation at a time with an engine; psync is the
// default.
func synchronous(engine string) bool {
	return engine == "" || engine == "mmap" || engine == "pvsync2" || strings.HasSuffix(engine, "sync")
}
