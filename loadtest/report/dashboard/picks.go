package dashboard

import (
	"net/url"
	"slices"
	"time"
)

// How many hosts and data servers are drawn, unless a page names them itself.
const (
	usualHosts  = 5
	usualStores = 6
	mostPicked  = 24 // that a page may name
)

// pickAgain is how often hosts are chosen anew: a plot that always shows others
// says nothing.
const pickAgain = 30 * time.Second

// muchBusier is how much busier another host must be to take a drawn one's place.
const muchBusier = 1.25

// picks are the tracks that one page draws, and how much of each it has.
type picks struct {
	hosts, stores []picked
	named         bool // the page has named its hosts
	at            time.Time
	sides         int // rows of the sides that it has
}

type picked struct {
	name string
	rows int
}

// newPicks reads which hosts a page wants: "auto" or none are the busiest.
func newPicks(q url.Values) *picks {
	p := &picks{}
	for _, name := range q["host"] {
		if len(p.hosts) < mostPicked {
			p.hosts = append(p.hosts, picked{name: name})
			p.named = true
		}
	}
	return p
}

// forget makes p that of a page that has nothing.
func (p *picks) forget() {
	p.sides, p.stores, p.at = 0, nil, time.Time{}
	for i := range p.hosts {
		p.hosts[i].rows = 0
	}
	if !p.named {
		p.hosts = nil
	}
}

// blocks returns what the page lacks of its tracks. A track of which nothing was
// sent before begins at row 0, so that a page knows a new one.
func (p *picks) blocks(h *history, now time.Time) []block {
	p.choose(h, now)
	var all []block
	for i := range p.hosts {
		x := h.hosts[p.hosts[i].name]
		if x != nil {
			all = p.hosts[i].block(all, "host", x.track, hostNames())
		}
	}
	for i := range p.stores {
		if s := h.stores[p.stores[i].name]; s != nil {
			all = p.stores[i].block(all, "store", s.track, []string{"throughput"})
		}
	}
	return all
}

// block appends what lacks of t. The newest rows may have grown since they were
// sent, so that they are sent again.
func (p *picked) block(all []block, kind string, t *track, names []string) []block {
	const again = 2
	from := max(0, min(p.rows, len(t.at))-again)
	if p.rows > 0 && p.rows == len(t.at) && kind == "host" {
		return all
	}
	p.rows = len(t.at)
	b := block{Kind: kind, Name: p.name, From: from, At: moments(t.at[from:]), Cols: map[string]floats{}}
	for c, name := range names {
		b.Cols[name] = floats(t.cols[c][from:])
	}
	return append(all, b)
}

// choose fills the places of hosts and data servers, and now and then gives
// those of idle hosts to much busier ones.
func (p *picks) choose(h *history, now time.Time) {
	stores := h.storesNow()
	for i := range stores {
		if len(p.stores) == usualStores {
			break
		}
		p.stores = pick(p.stores, stores[i].Name)
	}
	if p.named {
		return
	}
	all := h.busiest()
	if len(p.hosts) == usualHosts && now.Sub(p.at) >= pickAgain {
		p.at = now
		p.replace(h, all)
	}
	for _, x := range all {
		if len(p.hosts) == usualHosts {
			return
		}
		p.hosts = pick(p.hosts, x.name)
		p.at = now
	}
}

func (p *picks) replace(h *history, all []*host) {
	for _, x := range all[:min(usualHosts, len(all))] {
		if slices.ContainsFunc(p.hosts, func(o picked) bool { return o.name == x.name }) {
			continue
		}
		least := 0
		for i := range p.hosts {
			if h.hosts[p.hosts[i].name].busy < h.hosts[p.hosts[least].name].busy {
				least = i
			}
		}
		if x.busy > muchBusier*h.hosts[p.hosts[least].name].busy {
			p.hosts[least] = picked{name: x.name}
		}
	}
}

// pick appends name unless it is there.
func pick(all []picked, name string) []picked {
	if slices.ContainsFunc(all, func(p picked) bool { return p.name == name }) {
		return all
	}
	return append(all, picked{name: name})
}
