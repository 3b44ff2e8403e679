package dashboard

import (
	"net/url"
	"slices"
	"time"
)

// Numbers of hosts and data servers that are drawn, unless a page names them itself.
const (
	usualHosts  = 5
	usualStores = 6
	mostPicked  = 24 // that a page may name
)

// pickAgain is the interval at which the hosts are selected again: a plot whose hosts change
// constantly is useless.
const pickAgain = 30 * time.Second

// muchBusier is the ratio of loads from which another host replaces a drawn host.
const muchBusier = 1.25

// picks are the tracks that one page draws, and the number of rows that it has of each track.
type picks struct {
	hosts, stores []picked
	named         bool // the page has named its hosts
	at            time.Time
	sides         int // number of rows of the sides that it has
	rates         int // number of rows of the sums of links that it has
}

type picked struct {
	name string
	rows int
}

// newPicks reads the hosts that a page requests: without any host, the busiest hosts are drawn.
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

// forget resets p to the state of a page without data.
func (p *picks) forget() {
	p.sides, p.rates, p.stores, p.at = 0, 0, nil, time.Time{}
	for i := range p.hosts {
		p.hosts[i].rows = 0
	}
	if !p.named {
		p.hosts = nil
	}
}

// blocks returns the data of its tracks that the page lacks. A track that was not sent before
// begins at row 0, so that a page recognizes a new track.
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

// block appends the missing rows of t. The newest rows may have changed since they were sent, so
// they are sent again.
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

// choose selects data servers and hosts for free places, and at intervals replaces idle hosts with
// much busier hosts.
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

// pick appends name unless it is already present.
func pick(all []picked, name string) []picked {
	if slices.ContainsFunc(all, func(p picked) bool { return p.name == name }) {
		return all
	}
	return append(all, picked{name: name})
}
