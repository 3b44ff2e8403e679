package dashboard

import (
	"math"
	"slices"

	"weir/loadtest/results"
)

// Bounds of the links of a data challenge.
const (
	mostLinks  = 10_000 // that are kept
	lastMinute = 60.0   // seconds over which the rates of links are means
)

// linksOf are the links of a data challenge: each with its last minute, and the sums of all links
// over time.
type linksOf struct {
	all   []*linkState
	place map[[2]string]int // by source and destination
	rates *track            // sums of all links: columns of rates
	stage int
}

// Columns of the sums of all links, in bytes per second and copies.
const (
	rateTarget = iota
	rateAchieved
	rateFlight
	rateQueued
	rateColumns
)

func rateNames() []string { return []string{"target", "achieved", "in_flight", "queued"} }

// A linkState is the newest state of a link.
type linkState struct {
	source, dest   string
	seq            int64 // of the last change
	recent         []carried
	wrong          float64 // bytes of wrong copies that are still to be taken off
	flight, queued float64
	done, failed   int
	reason         string
}

// carried has the bytes of an interval of a link.
type carried struct{ at, seconds, wanted, moved float64 }

func newLinks() linksOf {
	return linksOf{place: map[[2]string]int{}, rates: newTrack(rateColumns)}
}

// link adds one line of links.jsonl.
func (h *history) link(l *results.LinkInterval) {
	if h.start.IsZero() {
		h.start = l.Start
	}
	h.line()
	key := [2]string{short(l.Source, mostName), short(l.Dest, mostName)}
	i, known := h.links.place[key]
	if !known {
		if len(h.links.all) >= mostLinks {
			return
		}
		i = len(h.links.all)
		h.links.place[key] = i
		h.links.all = append(h.links.all, &linkState{source: key[0], dest: key[1]})
	}
	at := h.since(l.Start)
	x := h.links.all[i]
	x.seq, x.flight, x.queued, x.reason = h.seq, l.Flight, l.Queued, short(string(l.Reason), mostName)
	x.done, x.failed = x.done+l.Done, x.failed+l.Failed
	achieved := x.net(l)
	x.recent = append(x.recent, carried{at, l.Seconds, l.Target * l.Seconds, achieved})
	x.recent = slices.DeleteFunc(x.recent, func(c carried) bool { return c.at <= at-lastMinute || c.at > at })
	h.links.stage = l.Stage
	h.links.add(math.Round(at), l, achieved)
	if len(h.links.rates.at) > mostRows {
		h.links.rates.halve()
		h.turn()
	}
}

// net returns the bytes of a line less those of copies whose verification failed. They may have been
// moved in earlier lines: the rest is taken off later ones.
func (x *linkState) net(l *results.LinkInterval) float64 {
	x.wrong += float64(l.Wrong)
	off := min(x.wrong, float64(l.Moved))
	x.wrong -= off
	return float64(l.Moved) - off
}

// add adds the rates of a link to the sums of their moment. Moments before the newest are left out.
func (o *linksOf) add(at float64, l *results.LinkInterval, achieved float64) {
	i := o.rates.add(at)
	if i < 0 || l.Seconds <= 0 {
		return
	}
	for c, x := range [rateColumns]float64{l.Target, achieved / l.Seconds, l.Flight, l.Queued} {
		y := &o.rates.cols[c][i]
		if isUnknown(*y) {
			*y = 0
		}
		*y += float32(x)
	}
}

// rate returns the means of the last minute, in bytes per second.
func (x *linkState) rate() (target, achieved float64) {
	seconds := 0.0
	for _, c := range x.recent {
		seconds, target, achieved = seconds+c.seconds, target+c.wanted, achieved+c.moved
	}
	if seconds <= 0 {
		return 0, 0
	}
	return target / seconds, achieved / seconds
}

// linksNow are the links of a data challenge that have changed.
type linksNow struct {
	Stage   int      `json:"stage"`
	Sites   []string `json:"sites"`   // names that the rows use
	Reasons []string `json:"reasons"` // of the controller
	Rows    []floats `json:"rows"`    // index, source, destination, target, achieved, in flight, queued, done, failed, reason
}

// linksNow returns the links that have changed since seq, nil if no link has.
func (h *history) linksNow(seq int64) *linksNow {
	n := &linksNow{Stage: h.links.stage}
	sites, reasons := map[string]int{}, map[string]int{}
	number := func(of map[string]int, all *[]string, name string) float32 {
		i, known := of[name]
		if !known {
			i = len(*all)
			of[name], *all = i, append(*all, name)
		}
		return float32(i)
	}
	for i, x := range h.links.all {
		if x.seq <= seq {
			continue
		}
		target, achieved := x.rate()
		n.Rows = append(n.Rows, floats{float32(i), number(sites, &n.Sites, x.source), number(sites, &n.Sites, x.dest), float32(target),
			float32(achieved), float32(x.flight), float32(x.queued), float32(x.done), float32(x.failed), number(reasons, &n.Reasons, x.reason)})
	}
	if n.Rows == nil {
		return nil
	}
	return n
}

// ratesFrom returns the rows of the sums that a page lacks. The newest row may change, so it is sent
// again.
func (h *history) ratesFrom(list *picks) *block {
	t := h.links.rates
	if len(t.at) == 0 {
		return nil
	}
	i := max(0, min(list.rates, len(t.at))-2)
	list.rates = len(t.at)
	b := &block{From: i, At: moments(t.at[i:]), Cols: map[string]floats{}}
	for c, name := range rateNames() {
		b.Cols[name] = floats(t.cols[c][i:])
	}
	return b
}
