package results

import (
	"fmt"
	"math"

	"weir/measure"
	"weir/monitor"
	"weir/storage"
)

// Bounds of what one line can say. They are far beyond any machine and keep
// sums of damaged lines finite.
const (
	mostCount   = int64(1) << 50
	mostSeconds = 1e6
	mostClients = 1e9
	mostSites   = 1000
)

// checkInterval refuses numbers that no measurement can give.
func checkInterval(iv *measure.Interval) error {
	if iv.Start.IsZero() || iv.Start.Year() > 9999 {
		return fmt.Errorf("damaged line: start is missing or impossible")
	}
	if iv.Step < 0 || iv.Step > 1e6 {
		return fmt.Errorf("damaged line: step %d is impossible", iv.Step)
	}
	if iv.Seconds < 0 || iv.Seconds > mostSeconds {
		return fmt.Errorf("damaged line: duration_seconds %v is impossible", iv.Seconds)
	}
	for _, f := range iv.Fields() {
		if err := checkField(f); err != nil {
			return err
		}
	}
	if iv.Clients < 0 || iv.Clients > mostClients || iv.Running > mostClients {
		return fmt.Errorf("damaged line: clients %v, or jobs_running %v, is impossible", iv.Clients, iv.Running)
	}
	return checkSites(iv)
}

// checkField refuses what a quantity of an interval cannot be.
func checkField(f measure.Field) error {
	switch v := f.Value.(type) {
	case *int64:
		if *v < 0 || *v > mostCount {
			return fmt.Errorf("damaged line: %s %d is impossible", f.Key, *v)
		}
	case *float64:
		if *v < 0 || *v > mostSeconds*mostClients {
			return fmt.Errorf("damaged line: %s %v is impossible", f.Key, *v)
		}
	case *map[storage.Class]int64:
		for class, n := range *v {
			if n < 0 || n > mostCount {
				return fmt.Errorf("damaged line: failed %s %d is impossible", class, n)
			}
		}
	case *measure.Histogram:
		if n := v.Count(); n < 0 || n > mostCount || v.Sum() < 0 || math.IsInf(v.Sum(), 0) {
			return fmt.Errorf("damaged line: %s is impossible", f.Key)
		}
	}
	return nil
}

// checkSites refuses what is impossible in any interval.
func checkSites(iv *measure.Interval) error {
	if len(iv.Sites) > mostSites {
		return fmt.Errorf("damaged line: %d sites are impossible", len(iv.Sites))
	}
	for name, s := range iv.Sites {
		if s == nil {
			return fmt.Errorf("damaged line: site %q is null", name)
		}
		if part := s.Interval(iv); checkInterval(&part) != nil {
			return fmt.Errorf("site %q: %w", name, checkInterval(&part))
		}
	}
	return nil
}

// A worst is the last number that cannot be, NaN if there was none.
type worst float64

func (w *worst) check(values ...float64) {
	for _, v := range values {
		if v < 0 || v > 1e16 {
			*w = worst(v)
		}
	}
}

// behind checks what is told of the servers behind a balancer.
func (w *worst) behind(s *monitor.Sample) {
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
		if v.Begin.IsZero() || v.Begin.Year() > 9999 {
			w.check(-1)
		}
	}
}

// checkSample refuses numbers that no look at a host can give.
func checkSample(s *monitor.Sample) error {
	if s.Time.IsZero() || s.Time.Year() > 9999 {
		return fmt.Errorf("damaged line: time is missing or impossible")
	}
	if s.Seconds < 0 || s.Seconds > mostSeconds || s.Cost < 0 || s.Cost > mostSeconds {
		return fmt.Errorf("damaged line: duration_seconds %v or cost_cpu_seconds %v is impossible", s.Seconds, s.Cost)
	}
	if s.Cores < 0 || s.Cores > 1e6 {
		return fmt.Errorf("damaged line: cores %d is impossible", s.Cores)
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
	w.behind(s)
	if !math.IsNaN(float64(w)) {
		return fmt.Errorf("damaged line: %v of host %q is impossible", float64(w), s.Host)
	}
	return nil
}

// checkTransfer refuses numbers that no attempt can give.
func checkTransfer(t *measure.Transfer) error {
	switch {
	case t.Step < 0 || t.Step > 1e6:
		return fmt.Errorf("damaged line: step %d is impossible", t.Step)
	case t.File == "" || t.Dest == "":
		return fmt.Errorf("damaged line: a transfer has a file and a destination")
	case t.End.IsZero() || t.End.Year() > 9999 || t.Begin.Year() > 9999 || t.End.Before(t.Begin):
		return fmt.Errorf("damaged line: it ended before it began")
	case min(t.Size, t.Moved, t.Resumed) < 0 || max(t.Size, t.Moved, t.Resumed) > mostCount:
		return fmt.Errorf("damaged line: size_bytes %d, moved_bytes %d or resumed_bytes %d is impossible", t.Size, t.Moved, t.Resumed)
	case !(t.CPU >= 0 && t.CPU <= mostSeconds):
		return fmt.Errorf("damaged line: mover_cpu_seconds %v is impossible", t.CPU)
	}
	return nil
}
