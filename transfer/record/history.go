package record

import (
	"context"
	"slices"
	"time"

	"weir/loadtest/results"
	"weir/transfer"
	"weir/transfer/client"
)

// A History is the movement of the bytes of a step over time, computed from the agents' samples of
// each second, or from the attempts.
type History struct {
	taken      *taken
	movers     []*site
	begin, end time.Time // of the copies
}

// sampled is the minimum duration of copies for which the agents' samples are used: these are a
// second long, and shorter steps may share a sample.
const sampled = 3 * time.Second

// Load requests the history of a step.
func Load(ctx context.Context, c *client.Client, s Step) (*History, error) {
	t, err := take(ctx, c, 1, &s)
	if err != nil {
		return nil, err
	}
	sites, err := hosts(ctx, c, []*taken{t})
	if err != nil {
		return nil, err
	}
	h := &History{taken: t}
	for i := range t.list {
		a := &t.list[i]
		if a.Moved == 0 || a.Begin.IsZero() {
			continue
		}
		if h.begin.IsZero() || a.Begin.Before(h.begin) {
			h.begin = a.Begin
		}
		if a.End.After(h.end) {
			h.end = a.End
		}
		if m := sites[moverName(a)]; !slices.Contains(h.movers, m) {
			h.movers = append(h.movers, m)
		}
	}
	return h, nil
}

// moverName returns the site whose agent moves the bytes of an attempt.
func moverName(a *results.Transfer) string {
	if a.Mode == string(transfer.Push) {
		return a.Source
	}
	return a.Dest
}

// Moved returns the bytes that moved between two moments. If the copies took less than three
// seconds, or an agent has no samples, the bytes of each attempt count as moved evenly from its
// begin to its end.
func (h *History) Moved(from, to time.Time) (bytes int64) {
	if from.Before(h.begin) {
		from = h.begin
	}
	if to.After(h.end) {
		to = h.end
	}
	for _, m := range h.movers {
		if reported := m.moved(from, to); reported > 0 && h.end.Sub(h.begin) >= sampled {
			bytes += int64(reported)
			continue
		}
		for i := range h.taken.list {
			if a := &h.taken.list[i]; moverName(a) == m.name {
				bytes += part(a, from, to, map[string]*site{a.Source: {}, a.Dest: {}})
			}
		}
	}
	return bytes
}

// Windows in which Peak looks for the largest throughput.
const (
	peakWindow = time.Second
	peakStep   = 250 * time.Millisecond
)

// Peak returns the largest throughput within a second, in bytes per second; if the copies took less
// than a second, their throughput.
func (h *History) Peak() float64 {
	whole := h.end.Sub(h.begin)
	if whole <= 0 {
		return 0
	}
	window, peak := min(peakWindow, whole), 0.0
	for from := h.begin; !from.Add(window).After(h.end); from = from.Add(peakStep) {
		peak = max(peak, float64(h.Moved(from, from.Add(window)))/window.Seconds())
	}
	return peak
}

// A Source has the totals of the files that came from a site.
type Source struct {
	Site    string  `json:"site"`
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"duration_seconds"` // from the begin of its first copy to the end of its last one
}

// Sources returns the totals of each source site, by name.
func (h *History) Sources() (all []Source) {
	for _, name := range h.taken.sources() {
		s := Source{Site: name}
		var begin, end time.Time
		for i := range h.taken.list {
			a := &h.taken.list[i]
			if a.Source != name || a.Begin.IsZero() {
				continue
			}
			if begin.IsZero() || a.Begin.Before(begin) {
				begin = a.Begin
			}
			if a.End.After(end) {
				end = a.End
			}
			if s.Bytes += a.Moved; a.Done {
				s.Files++
			}
		}
		if s.Seconds = end.Sub(begin).Seconds(); !begin.IsZero() {
			all = append(all, s)
		}
	}
	return slices.Clip(all)
}
