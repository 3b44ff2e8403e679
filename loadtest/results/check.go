package results

import (
	"errors"
	"fmt"
	"math"
	"time"

	"weir/loadtest/measure"
	"weir/monitor"
	"weir/storage"
)

// Limits of the values of one line. They are far beyond any machine, and keep sums of damaged lines
// finite.
const (
	mostCount   = int64(1) << 50
	mostSeconds = 1e6
	mostClients = 1e9
	mostSites   = 1000
	mostStep    = 1e6
	mostCores   = 1e6
)

func impossible(key string, value any) error {
	return fmt.Errorf("damaged line: %s %v is impossible", key, value)
}

func badTime(t time.Time) bool { return t.IsZero() || t.Year() > 9999 }

// checkInterval returns an error for numbers that are impossible in a measurement.
func checkInterval(iv *measure.Interval) error {
	switch {
	case badTime(iv.Start):
		return errors.New("damaged line: start is missing or impossible")
	case iv.Step < 0 || iv.Step > mostStep:
		return impossible("step", iv.Step)
	case iv.Seconds < 0 || iv.Seconds > mostSeconds:
		return impossible("duration_seconds", iv.Seconds)
	case iv.Clients < 0 || iv.Clients > mostClients:
		return impossible("clients", iv.Clients)
	case iv.Running > mostClients:
		return impossible("jobs_running", iv.Running)
	case len(iv.Sites) > mostSites:
		return impossible("number of sites", len(iv.Sites))
	}
	for _, f := range iv.Fields() {
		if err := checkField(f); err != nil {
			return err
		}
	}
	for name, s := range iv.Sites {
		if s == nil {
			return fmt.Errorf("damaged line: site %q is null", name)
		}
		part := s.Interval(iv)
		if err := checkInterval(&part); err != nil {
			return fmt.Errorf("site %q: %w", name, err)
		}
	}
	return nil
}

// checkField returns an error for impossible values of a quantity of an interval.
func checkField(f measure.Field) error {
	switch v := f.Value.(type) {
	case *int64:
		if *v < 0 || *v > mostCount {
			return impossible(f.Key, *v)
		}
	case *float64:
		most := mostSeconds * mostClients
		if f.Key == "done_squares" { // of counts
			most = float64(mostCount) * float64(mostCount)
		}
		if *v < 0 || *v > most {
			return impossible(f.Key, *v)
		}
	case *map[storage.Class]int64:
		for class, n := range *v {
			if n < 0 || n > mostCount {
				return impossible("failed "+class.String(), n)
			}
		}
	case *measure.Histogram:
		if n := v.Count(); n < 0 || n > mostCount || v.Sum() < 0 || math.IsInf(v.Sum(), 0) {
			return impossible("histogram", f.Key)
		}
	}
	return nil
}

// A worst is the last impossible number, or NaN if all numbers are possible.
type worst float64

func (w *worst) check(values ...float64) {
	for _, v := range values {
		if v < 0 || v > 1e16 {
			*w = worst(v)
		}
	}
}

// checkSample returns an error for numbers that are impossible in a sample of a host.
func checkSample(s *monitor.Sample) error {
	switch {
	case badTime(s.Time):
		return errors.New("damaged line: time is missing or impossible")
	case s.Seconds < 0 || s.Seconds > mostSeconds:
		return impossible("duration_seconds", s.Seconds)
	case s.Cost < 0 || s.Cost > mostSeconds:
		return impossible("cost_cpu_seconds", s.Cost)
	case s.Cores < 0 || s.Cores > mostCores:
		return impossible("cores", s.Cores)
	}
	w := worst(math.NaN())
	w.check(s.Load, s.Others)
	if s.CPU != nil {
		w.check(s.CPU.User, s.CPU.System, s.CPU.IRQ, s.CPU.IOWait, s.CPU.Steal, s.CPU.Idle)
	}
	w.check(s.Core...)
	for i := range s.Disks {
		d := &s.Disks[i]
		w.check(d.Read, d.Write, d.Ops, d.Queue, d.Busy)
	}
	for i := range s.Procs {
		p := &s.Procs[i]
		w.check(p.User, p.System, p.BusiestThread, p.UnmeasuredThread, float64(p.Read), float64(p.Written))
	}
	for i := range s.Nets {
		n := &s.Nets[i]
		w.check(float64(n.Received), float64(n.Sent), float64(n.PacketsIn), float64(n.PacketsOut))
	}
	w.checkBackends(s)
	if !math.IsNaN(float64(w)) {
		return fmt.Errorf("damaged line: %v of host %q is impossible", float64(w), s.Host)
	}
	return nil
}

// checkBackends checks the values of a balancer, or of a server's log.
func (w *worst) checkBackends(s *monitor.Sample) {
	if b := s.Balancer; b != nil {
		w.check(float64(b.Connected), float64(b.Received), float64(b.Sent))
		for i := range b.Servers {
			v := &b.Servers[i]
			w.check(float64(v.Weight), float64(v.Connections), float64(v.Limit), float64(v.Queue), float64(v.Connected),
				float64(v.Received), float64(v.Sent), float64(v.Errors))
		}
	}
	if s.Transfers == nil {
		return
	}
	w.check(float64(s.Transfers.Done), float64(s.Transfers.Failed))
	for i := range s.Transfers.Spans {
		v := &s.Transfers.Spans[i]
		w.check(float64(v.Moved), v.Running, v.Seconds*(1e16/mostSeconds))
		if badTime(v.Begin) {
			w.check(-1)
		}
	}
}

// checkTransfer returns an error for numbers that are impossible in an attempt.
func checkTransfer(t *Transfer) error {
	switch {
	case t.Step < 0 || t.Step > mostStep:
		return impossible("step", t.Step)
	case t.File == "" || t.Dest == "":
		return errors.New("damaged line: a transfer has a file and a destination")
	case badTime(t.End) || t.Begin.Year() > 9999 || t.Asked.Year() > 9999 || t.LastByte.Year() > 9999 ||
		t.Asked.IsZero() && t.End.Before(t.Begin): // Begin of a data challenge is by the clock of the transfer service
		return errors.New("damaged line: it ended before it began")
	case min(t.Size, t.Moved, t.Resumed) < 0 || max(t.Size, t.Moved, t.Resumed) > mostCount:
		return fmt.Errorf("damaged line: size_bytes %d, moved_bytes %d or resumed_bytes %d is impossible", t.Size, t.Moved, t.Resumed)
	case !(t.CPU >= 0 && t.CPU <= mostSeconds):
		return impossible("mover_cpu_seconds", t.CPU)
	}
	return nil
}
