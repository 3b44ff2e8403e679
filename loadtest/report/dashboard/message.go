package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/say"
)

// A cursor is the state of a page: the page has all changes until seq, of one epoch of one run. It
// is the id of a server-sent event.
type cursor struct {
	epoch uint32
	seq   int64
}

func (c cursor) String() string { return fmt.Sprintf("%d.%d", c.epoch, c.seq) }

// parseCursor reads the output of String; any other text is the state of a page without data.
func parseCursor(text string) cursor {
	a, b, _ := strings.Cut(text, ".")
	epoch, err := strconv.ParseUint(a, 10, 32)
	seq, err2 := strconv.ParseInt(b, 10, 64)
	if err != nil || err2 != nil {
		return cursor{}
	}
	return cursor{uint32(epoch), seq}
}

// A message contains the data that a page lacks, as one server-sent event. Absent parts have not
// changed.
type message struct {
	Reset  bool      `json:"reset,omitempty"` // discard all previous data
	Run    *about    `json:"run,omitempty"`
	Runs   []entry   `json:"runs,omitempty"`
	Shown  string    `json:"shown,omitempty"` // key of the run, with runs
	Now    now       `json:"now"`
	Rows   *block    `json:"rows,omitempty"`
	Sides  *block    `json:"sides,omitempty"`
	Hosts  []hostNow `json:"hosts"`  // the busiest first, mostNow at most
	Count  int       `json:"count"`  // of hosts
	Stores []storeOf `json:"stores"` // sorted by payload, the highest first
	Tracks []block   `json:"tracks,omitempty"`
	Steps  []any     `json:"steps,omitempty"`
	Events []event   `json:"events,omitempty"`
	Errors []any     `json:"errors,omitempty"`
	Found  *Found    `json:"found,omitempty"`
	Links  *linksNow `json:"links,omitempty"` // of a data challenge
	Rates  *block    `json:"rates,omitempty"` // of all links together
}

// about is the description of a run.
type about struct {
	Dir    string    `json:"dir"`
	Run    string    `json:"run"`
	Name   string    `json:"name"`
	Target string    `json:"target"`
	Work   string    `json:"work"`
	Start  time.Time `json:"start"`
	Model  string    `json:"model"`
	Search bool      `json:"search,omitempty"`
	Weir   string    `json:"weir"`
}

// A block is the rows of a table from one row on.
type block struct {
	Kind string            `json:"kind,omitempty"` // of a track: host or store
	Name string            `json:"name,omitempty"`
	From int               `json:"from"`
	At   moments           `json:"at"`
	Cols map[string]floats `json:"cols"`
}

// now is the progress of a run.
type now struct {
	State   string  `json:"state"`
	Time    float64 `json:"time"`  // seconds since the start that were read
	Start   int64   `json:"start"` // ms since 1970 of the first interval
	Step    int     `json:"step"`
	Place   int     `json:"place"` // of the step in the plan, from 1
	Of      int     `json:"of"`    // steps in the plan; 0: unknown
	Clients float64 `json:"clients"`
	Phase   string  `json:"phase"`
	Left    float64 `json:"left"` // seconds
	AtMost  bool    `json:"at_most,omitempty"`
	Share   float64 `json:"share"` // elapsed share of the planned time
	Report  bool    `json:"report,omitempty"`
	Seconds int     `json:"seconds"` // of a point
	Problem string  `json:"problem,omitempty"`
	Last    string  `json:"last,omitempty"`    // text of the last event, once the run is over
	Workers string  `json:"workers,omitempty"` // numbers of workers by state, of a run on many machines
}

// States of a run.
const (
	waiting   = "waiting"   // its directory does not exist yet
	preparing = "preparing" // no load yet
	running_  = "running"
	ended     = "ended"
	broken    = "broken" // cut off: the writer has stopped without an end
)

type hostNow struct {
	Name  string  `json:"name"`
	Role  string  `json:"role"`
	Cores int     `json:"cores"`
	At    float64 `json:"at"`
	Now   floats  `json:"now"` // in the order of the columns of a host
}

type storeOf struct {
	Name  string  `json:"name"`
	Moved int64   `json:"moved"`
	Done  int64   `json:"done"`
	Of    float64 `json:"of"`  // share of all payload
	Now   float64 `json:"now"` // recent bytes per second
}

// message returns the data that a page at c lacks, and its new cursor. list selects the tracks of
// the run that the page shows. s.mu is held for reading.
func (s *shown) message(c cursor, list *picks, at time.Time) (*message, cursor) {
	h := s.h
	m := &message{Now: s.now(at), Hosts: h.hostsNow(), Count: len(h.hosts), Stores: h.storesNow()}
	if c.epoch != h.epoch {
		m.Reset, c.seq = true, -1
		list.forget()
	}
	if s.about != nil && s.runSeq > c.seq {
		m.Run = s.describe()
	}
	if i := slices.IndexFunc(h.rowSeq, func(seq int64) bool { return seq > c.seq }); i >= 0 || m.Reset {
		m.Rows = h.rowsFrom(max(i, 0))
		m.Sides = h.sidesFrom(list)
	}
	m.Tracks = list.blocks(h, at)
	if m.Links = h.linksNow(c.seq); m.Links != nil {
		m.Rates = h.ratesFrom(list)
	}
	for _, st := range h.steps {
		if st.seq > c.seq {
			m.Steps = append(m.Steps, st)
		}
	}
	for i := range h.events {
		if h.events[i].seq > c.seq {
			m.Events = append(m.Events, h.events[i])
		}
	}
	for _, class := range slices.Sorted(maps.Keys(h.errors)) {
		if e := h.errors[class]; e.seq > c.seq {
			m.Errors = append(m.Errors, e)
		}
	}
	if s.found != nil && s.foundSeq > c.seq {
		f := *s.found
		f.Drawings = nil
		m.Found = &f
	}
	return m, cursor{h.epoch, h.seq}
}

func (s *shown) describe() *about {
	return &about{Dir: say.Plain(s.dir), Run: say.Plain(s.about.Run), Name: say.Plain(s.plan.Name), Target: say.Plain(s.plan.Target),
		Work: say.Plain(s.plan.WorkText()), Start: s.about.Start, Model: say.Plain(string(s.plan.Model)), Search: s.plan.Find != nil,
		Weir: say.Plain(s.about.Weir)}
}

// rowsFrom returns the rows from i on.
func (h *history) rowsFrom(i int) *block {
	b := &block{From: i, At: moments(h.rows.at[i:]), Cols: map[string]floats{}}
	for c, name := range slices.Concat(colNames(), h.names) {
		b.Cols[name] = floats(h.rows.cols[c][i:])
	}
	return b
}

// sidesFrom returns the two sides' shares of their hosts' cores. The newest second may change, so
// it is sent again.
func (h *history) sidesFrom(list *picks) *block {
	t := h.sides
	i := max(0, min(list.sides, len(t.at))-2)
	list.sides = len(t.at)
	share := func(used, there int) floats {
		out := make(floats, 0, len(t.at)-i)
		for k := i; k < len(t.at); k++ {
			out = append(out, t.cols[used][k]/t.cols[there][k])
		}
		return out
	}
	return &block{From: i, At: moments(t.at[i:]), Cols: map[string]floats{
		"server": share(serverUsed, serverCores), "client": share(clientUsed, clientCores)}}
}

// mostNow is the largest number of hosts and data servers in the lists of a page.
const mostNow = 200

func (h *history) hostsNow() []hostNow {
	out := make([]hostNow, 0, len(h.hosts))
	for _, x := range h.busiest() {
		if len(out) == mostNow {
			break
		}
		out = append(out, hostNow{x.name, x.role, x.cores, x.at, floats(x.now)})
	}
	return out
}

// busiest returns the hosts, the host with the highest recent load first. Hosts with equal load are
// sorted by name.
func (h *history) busiest() []*host {
	all := slices.Collect(maps.Values(h.hosts))
	slices.SortFunc(all, func(a, b *host) int { return cmp.Or(cmp.Compare(b.busy, a.busy), cmp.Compare(a.name, b.name)) })
	return all
}

func (h *history) storesNow() []storeOf {
	const late = 10 // seconds
	sum := int64(0)
	out := make([]storeOf, 0, len(h.stores))
	for name, s := range h.stores {
		sum += s.moved
		o := storeOf{Name: name, Moved: s.moved, Done: s.done}
		if n := len(h.rows.at); n > 0 {
			end := h.rows.at[n-1]
			for i := len(s.track.at) - 1; i >= 0 && s.track.at[i] > end-late; i-- {
				o.Now += float64(s.track.cols[0][i]) / min(late, end+1)
			}
		}
		out = append(out, o)
	}
	for i := range out {
		if sum > 0 {
			out[i].Of = float64(out[i].Moved) / float64(sum)
		}
	}
	slices.SortFunc(out, func(a, b storeOf) int {
		return cmp.Or(cmp.Compare(b.Moved, a.Moved), cmp.Compare(b.Done, a.Done), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), mostNow)]
}
