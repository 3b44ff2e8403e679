package merge

import (
	"cmp"
	"iter"
	"slices"

	"weir/loadtest/results"
	"weir/monitor"
)

// addSamples writes the samples of all hosts, each host's second once: of one
// that several runs watched the first is taken, and what processes of other
// runs on the same machine did is put to it.
func addSamples(out *results.Writer, parts []*part) error {
	names := hostNames(parts)
	var all []*watched
	defer func() {
		for _, w := range all {
			w.stop()
		}
	}()
	for i, p := range parts {
		w := &watched{number: i, part: p, names: names}
		w.next, w.stop = iter.Pull2(p.Samples())
		all = append(all, w)
		if err := w.advance(); err != nil {
			return err
		}
	}
	for {
		var now int64
		any := false
		for _, w := range all {
			if w.head != nil && (!any || w.head.Time.Unix() < now) {
				now, any = w.head.Time.Unix(), true
			}
		}
		if !any {
			return nil
		}
		hosts := map[string]*monitor.Sample{}
		for _, w := range all {
			if err := w.take(now, hosts); err != nil {
				return err
			}
		}
		var sorted []*monitor.Sample
		for _, s := range hosts {
			sorted = append(sorted, s)
		}
		slices.SortFunc(sorted, func(a, b *monitor.Sample) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Host, b.Host)) })
		for _, s := range sorted {
			if err := out.Sample(s); err != nil {
				return err
			}
		}
	}
}

// A watched is the samples that one run has taken.
type watched struct {
	*part
	number int
	names  map[machine]string
	next   func() (*monitor.Sample, error, bool)
	stop   func()
	head   *monitor.Sample
}

func (w *watched) advance() error {
	s, err, ok := w.next()
	if !ok {
		w.head = nil
		return nil
	}
	w.head = s
	return err
}

// take puts the samples of a second to those of the other runs.
func (w *watched) take(now int64, hosts map[string]*monitor.Sample) error {
	mine := map[string]bool{} // of a host that has two samples in a second both are kept
	for w.head != nil && w.head.Time.Unix() <= now {
		s := w.head
		if w.own(s.Host) {
			s.Host = w.names[w.machine()]
		}
		key := s.Host
		for mine[key] {
			key += "+"
		}
		mine[key] = true
		if there := hosts[key]; there == nil {
			hosts[key] = s
		} else {
			join(there, s)
		}
		if err := w.advance(); err != nil {
			return err
		}
	}
	return nil
}

// join puts to s what others saw of the processes of the same host.
func join(s, other *monitor.Sample) {
	for _, p := range other.Procs {
		i := slices.IndexFunc(s.Procs, func(q monitor.Proc) bool { return q.Name == p.Name && q.Role == p.Role })
		switch {
		case i < 0:
			s.Procs = append(s.Procs, p)
		case p.Role == "client": // each run knows its own
			q := &s.Procs[i]
			q.Count, q.Threads, q.Files = q.Count+p.Count, q.Threads+p.Threads, q.Files+p.Files
			q.User, q.System = q.User+p.User, q.System+p.System
			q.RSS, q.Read, q.Written = q.RSS+p.RSS, q.Read+p.Read, q.Written+p.Written
		}
	}
	s.Cost += other.Cost
}

// A machine is identified by its name and when it was booted.
type machine struct{ host, boot string }

func (p *part) machine() machine { return machine{p.host, p.boot} }

// own reports whether host is what the run calls its own machine.
func (p *part) own(host string) bool {
	for _, h := range p.Plan.Hosts {
		if h.Name == host {
			return h.NodeExporter+h.XRootDReport == ""
		}
	}
	return false
}

// hostNames gives each machine a name of its own: as it calls itself.
func hostNames(parts []*part) map[machine]string {
	names, taken := map[machine]string{}, map[string]bool{}
	for _, p := range parts {
		m := p.machine()
		if names[m] != "" {
			continue
		}
		name := cmp.Or(m.host, "machine of worker "+p.name)
		if taken[name] {
			name += " (worker " + p.name + ")"
		}
		names[m], taken[name] = name, true
	}
	return names
}
