package record

import (
	"context"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
	"weir/storage"
	"weir/transfer"
	"weir/transfer/client"
)

// around is the additional time before and after the copies in which samples of the hosts are
// recorded.
const around = 2 * time.Second

// fine is the maximum length of a sample from which moved bytes are computed. After a day,
// coordinators keep one sample of a host for each minute.
const fine = 10 // seconds

// A site is one end of copies, with the samples of its host.
type site struct {
	name    string
	samples []transfer.Sample // by time
	source  bool
	dest    bool
	shares  *shares // of the copies whose bytes the site's agent moved; nil: it moved none
}

// hosts requests the samples of all sites.
func hosts(ctx context.Context, c *client.Client, all []*taken) (map[string]*site, error) {
	sites := map[string]*site{transfer.CoordinatorHost: {name: transfer.CoordinatorHost}}
	at := func(name string) *site {
		if sites[name] == nil {
			sites[name] = &site{name: name}
		}
		return sites[name]
	}
	for _, t := range all {
		for i := range t.list {
			a := &t.list[i]
			at(a.Dest).dest = true
			if a.Source != "" {
				at(a.Source).source = true
			}
		}
	}
	after, end := all[0].begin.Add(-around), all[len(all)-1].end.Add(around)
	for _, s := range sites {
		for from := after; ; {
			list, err := c.Samples(ctx, s.name, from, 0)
			if err != nil {
				return nil, err
			}
			if len(list) == 0 {
				break
			}
			from = list[len(list)-1].Time
			s.samples = append(s.samples, list...)
			if from.After(end) {
				break
			}
		}
		s.samples = slices.DeleteFunc(s.samples, func(x transfer.Sample) bool {
			return x.Seconds <= 0 || x.Time.Add(-seconds(x.Seconds)).After(end)
		})
		s.divide(all)
	}
	return sites, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// samples returns the samples of all hosts, in the format of a run directory.
func samples(sites map[string]*site, all []*taken) []*monitor.Sample {
	var list []*monitor.Sample
	for _, s := range sites {
		for i := range s.samples {
			list = append(list, s.sample(&s.samples[i], all))
		}
	}
	slices.SortFunc(list, func(a, b *monitor.Sample) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return map[bool]int{true: -1, false: 1}[a.Host < b.Host]
	})
	return list
}

// sample converts a sample of an agent, which contains only the total CPU usage: all of it counts
// as user time.
func (s *site) sample(x *transfer.Sample, all []*taken) *monitor.Sample {
	out := &monitor.Sample{Time: x.Time, Seconds: x.Seconds, Host: "site " + s.name, Role: "server", Cores: x.Cores,
		CPU: &monitor.CPU{User: x.CPU, Idle: 1 - x.CPU}}
	if x.Total > 0 {
		out.Memory = &monitor.Memory{Total: x.Total, Available: int64((1 - x.Memory) * float64(x.Total))}
	}
	bytes := func(rate float64) int64 { return int64(rate * x.Seconds) }
	out.Nets = []monitor.Net{{Name: "all", Received: bytes(x.In), Sent: bytes(x.Out)}}
	out.Disks = []monitor.Disk{{Name: "all", Read: x.Read, Write: x.Write}}
	out.Procs = []monitor.Proc{{Name: "weir agent", Role: "server", Count: 1, User: x.OwnCPU, RSS: x.OwnMemory, Sent: x.EndpointOut,
		Received: x.EndpointIn}}
	if s.name == transfer.CoordinatorHost {
		out.Host, out.Role, out.Procs[0].Name, out.Procs[0].Role = "coordinator", "other", "weir coordinator", "other"
	}
	middle := x.Time.Add(-seconds(x.Seconds / 2))
	for _, t := range all {
		if !middle.Before(t.begin) && !middle.After(t.end) {
			out.Step = t.step
		}
	}
	return out
}

// intervals cuts a step at whole seconds of the wall clock, separately for each source.
func (t *taken) intervals(sites map[string]*site) []*measure.Interval {
	var all []*measure.Interval
	sources := t.sources()
	for from := t.begin; from.Before(t.end); {
		to := from.Truncate(time.Second).Add(time.Second)
		if to.After(t.end) {
			to = t.end
		}
		running := 0.0
		cut := make([]*measure.Interval, len(sources))
		for i, s := range sources {
			cut[i] = &measure.Interval{Start: from, Seconds: to.Sub(from).Seconds(), Step: t.step, Phase: measure.Measured,
				Kind: storage.Copy, Server: s}
		}
		for i := range t.list {
			a := &t.list[i]
			if k := slices.Index(sources, a.Source); k >= 0 {
				t.count(cut[k], a, from, to, sites)
				running += overlap(a, from, to).Seconds()
			}
		}
		for _, iv := range cut {
			iv.Clients = running / iv.Seconds
		}
		all = append(all, cut...)
		from = to
	}
	return all
}

func (t *taken) sources() (all []string) {
	for i := range t.list {
		all = append(all, t.list[i].Source)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// count adds the part of an attempt that lies between two moments.
func (t *taken) count(iv *measure.Interval, a *results.Transfer, from, to time.Time, sites map[string]*site) {
	within := func(at time.Time) bool { return !at.Before(from) && (at.Before(to) || at.Equal(to) && to.Equal(t.end)) }
	if within(a.Begin) {
		iv.Begun++
	}
	iv.Moved += part(a, from, to, sites)
	if !within(a.End) {
		return
	}
	switch {
	case a.Done:
		iv.Done++
		iv.Tasks++
		iv.Latency.Record(a.End.Sub(a.Begin))
		if a.Verified {
			iv.Verified++
		} else {
			iv.Unverifiable++
		}
	case !a.Begin.IsZero():
		if iv.Failed == nil {
			iv.Failed = map[storage.Class]int64{}
		}
		iv.Failed[a.Class]++
	}
}

// overlap returns the time for which an attempt ran between two moments.
func overlap(a *results.Transfer, from, to time.Time) time.Duration {
	if a.Begin.IsZero() {
		return 0
	}
	if a.Begin.After(from) {
		from = a.Begin
	}
	if a.End.Before(to) {
		to = a.End
	}
	return max(0, to.Sub(from))
}

// part returns the number of bytes of an attempt that moved between two moments: its share of the
// mover's samples, if they cover the attempt, else evenly. The parts of adjoining spans add up to the
// whole.
func part(a *results.Transfer, from, to time.Time, sites map[string]*site) int64 {
	if a.Moved == 0 || a.Begin.IsZero() {
		return 0
	}
	upTo := func(at time.Time) int64 {
		if !at.Before(a.End) { // also for attempts that took no time
			return a.Moved
		}
		if !at.After(a.Begin) {
			return 0
		}
		mover := sites[moverName(a)].shares
		if whole := mover.between(a.Begin, a.End); whole > 0 {
			return int64(float64(a.Moved) * min(1, (mover.value(mover.bytes, at)-mover.value(mover.bytes, a.Begin))/whole))
		}
		return int64(float64(a.Moved) * at.Sub(a.Begin).Seconds() / a.End.Sub(a.Begin).Seconds())
	}
	if !a.End.After(from) && !a.End.Equal(a.Begin) {
		return 0
	}
	if a.End.Equal(a.Begin) && (a.End.Before(from) || !a.End.Before(to)) {
		return 0
	}
	return upTo(to) - upTo(from)*boolInt(!a.End.Equal(a.Begin))
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// moved returns the number of bytes that a site's agent moved between two moments, from its
// samples; 0 if the samples do not cover them, or are too coarse.
func (s *site) moved(from, to time.Time) float64 {
	sum, covered := 0.0, time.Duration(0)
	for i := range s.samples {
		x := &s.samples[i]
		begin, end := x.Time.Add(-seconds(x.Seconds)), x.Time
		if x.Seconds > fine {
			continue
		}
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if d := end.Sub(begin); d > 0 {
			sum += x.MovedBytes * d.Seconds()
			covered += d
		}
	}
	if covered < to.Sub(from)*9/10 {
		return 0
	}
	return sum
}
