package link

import (
	"cmp"
	"slices"

	"weir/internal/unit"
)

// Over returns the names of the links that lead over the trunk of that name, nil if it is not a
// trunk.
func Over(links []Named, trunk string) []string {
	var names []string
	for _, l := range links {
		if trunk != "" && l.Spec.Trunk == trunk {
			names = append(names, l.Name)
		}
	}
	return names
}

// Sites returns the links at whose far ends there are clients: all but the trunks, in their order.
func Sites(links []Named) []Named {
	return slices.DeleteFunc(slices.Clone(links), func(l Named) bool { return len(Over(links, l.Name)) > 0 })
}

// Trunks returns the links that others lead over, in their order.
func Trunks(links []Named) []Named {
	return slices.DeleteFunc(slices.Clone(links), func(l Named) bool { return len(Over(links, l.Name)) == 0 })
}

// Path returns the link between the clients of l, one of links, and the service: l itself, with its
// trunk if it has one. Round trip times, jitters and queues add up, the lowest rate and the
// smallest MTU and black hole hold. The burst of the line with the lowest rate holds.
func Path(links []Named, l Named) Spec {
	s := l.Spec.Complete()
	i := slices.IndexFunc(links, func(t Named) bool { return s.Trunk != "" && t.Name == s.Trunk })
	if i < 0 {
		return s
	}
	t := links[i].Spec.Complete()
	if r := lower(s.Rate, t.Rate); r != s.Rate {
		s.Burst = t.Burst
	}
	s.Rate, s.Up = lower(s.Rate, t.Rate), lower(s.FromClients(), t.FromClients())
	s.RTT, s.Jitter, s.Queue = s.RTT+t.RTT, s.Jitter+t.Jitter, s.Queue+t.Queue
	s.Loss = 1 - (1-s.Loss)*(1-t.Loss)
	s.MTU = min(s.MTU, t.MTU)
	s.BlackHole = least(s.BlackHole, t.BlackHole)
	return s
}

// lower returns the lower of two rates, of which 0 is without a limit.
func lower(a, b unit.Bitrate) unit.Bitrate {
	if a == 0 || b == 0 {
		return cmp.Or(a, b)
	}
	return min(a, b)
}

// least returns the smaller of two sizes, of which 0 is without a limit.
func least(a, b unit.Size) unit.Size {
	if a == 0 || b == 0 {
		return cmp.Or(a, b)
	}
	return min(a, b)
}
