package schedule

import (
	"cmp"
	"slices"
	"time"
)

// A Kept link is what is to be known of it when the coordinator starts again.
type Kept struct {
	Source  string    `json:"source"`
	Dest    string    `json:"dest"`
	Limit   Limit     `json:"limit"`
	Recent  Recent    `json:"recent"`
	Success float64   `json:"success"`
	Last    time.Time `json:"last,omitzero"`
	Failed  time.Time `json:"failed,omitzero"`
	Rate    float64   `json:"rate_bytes_per_second"`
}

// Keep returns what is worth keeping, by the links' names.
func (n *Network) Keep() []Kept {
	kept := make([]Kept, 0, len(n.links))
	for w, l := range n.links {
		kept = append(kept, Kept{
			Source: w.from, Dest: w.to, Limit: l.limit, Recent: l.recent,
			Success: l.success, Last: l.last, Failed: l.failed, Rate: l.rate,
		})
	}
	slices.SortFunc(kept, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Dest, b.Dest))
	})
	return kept
}

// Load takes up what was kept. Limits stay within today's rules, and trials that
// went on are forgotten.
func (n *Network) Load(kept []Kept, now time.Time) {
	for _, k := range kept {
		l := n.link(k.Source, k.Dest, now)
		if r := n.rules; r.Min < r.Max && k.Limit.N > 0 {
			l.limit = k.Limit
			if l.limit.Before > 0 {
				l.limit.N, l.limit.Before = l.limit.Before, 0
			}
			l.limit.N = min(r.Max, max(r.Min, l.limit.N))
			l.limit.Seen, l.limit.Sum = 0, 0
		}
		l.recent, l.success, l.last, l.failed, l.rate = k.Recent, k.Success, k.Last, k.Failed, k.Rate
	}
}
