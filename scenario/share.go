package scenario

import (
	"math/bits"

	"weir/internal/unit"
	"weir/link"
)

// Share returns part i of n of the plan (0 <= i < n), so that n runs at the
// same time do together what the plan says: its part of every step's clients,
// with client numbers that no other part has; of every rate, in proportion to
// the clients that may serve it; and of the operations and bytes after which
// to stop. A part may have steps without clients, if there are fewer than n.
//
// With links, n is a multiple of their number, and part i is at the site of
// link i % len(Links): the links' shares say how many clients that site has.
//
// A part that has clients is never left without a bound that the plan has: it
// gets at least one operation or byte, so that if Stop.Count or Stop.Bytes is
// less than n they can be exceeded by up to n-1.
func (p *Plan) Share(i, n int) *Plan {
	s := *p
	s.Steps = make([]Step, len(p.Steps))
	most := p.MostClients()
	for k, step := range p.Steps {
		whole := step.Clients
		_, step.Clients = p.part(whole, i, n)
		if step.Clients < whole {
			step.Rate *= unit.Rate(step.Clients) / unit.Rate(whole)
		}
		s.Steps[k] = step
	}
	from, mine := p.part(most, i, n)
	until := from + mine
	s.First = p.First + from
	s.Stop.Count = portion(p.Stop.Count, from, until, most)
	s.Stop.Bytes = unit.Size(portion(int64(p.Stop.Bytes), from, until, most))
	return &s
}

// part returns how many of total clients fall to part i of n, and how many to
// the parts before it.
func (p *Plan) part(total, i, n int) (from, mine int) {
	sites := len(p.Links)
	if sites == 0 {
		return before(total, i, n), part(total, i, n)
	}
	dealt := link.Deal(total, p.Links)
	for k := range i {
		from += part(dealt[k%sites], k/sites, n/sites)
	}
	return from, part(dealt[i%sites], i/sites, n/sites)
}

// part returns how many of total fall to part i of n. It never falls when
// total grows, so that client numbers of one step fit in those of a larger.
func part(total, i, n int) int {
	if i < total%n {
		return total/n + 1
	}
	return total / n
}

// before returns how many of total fall to the parts before i.
func before(total, i, n int) int { return total/n*i + min(i, total%n) }

// portion returns what falls to the clients from (and until) of most when
// total is dealt out evenly among them; at least 1 if there are any.
func portion(total int64, from, until, most int) int64 {
	if total <= 0 || until == from {
		return 0
	}
	upTo := func(k int) int64 {
		high, low := bits.Mul64(uint64(total), uint64(k))
		quotient, _ := bits.Div64(high, low, uint64(most))
		return int64(quotient)
	}
	return max(upTo(until)-upTo(from), 1)
}
