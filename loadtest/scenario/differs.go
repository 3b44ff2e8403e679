package scenario

import (
	"encoding/json"
	"slices"

	"weir/monitor"
)

// Differs returns the keys in which two plans differ, sorted. Without a difference the runs of the
// two plans can be added up. The seed, the paths of files on the machine, the monitored hosts, the
// machines of the clients, and conditions of the result do not count.
func (p *Plan) Differs(o *Plan) []string {
	a, b := p.bare(), o.bare()
	var keys []string
	for k, v := range a {
		if string(b[k]) != string(v) {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// bare returns the keys of the plan that count in Differs.
func (p *Plan) bare() map[string]json.RawMessage {
	c := *p.own()
	for _, path := range paths(&c.Files, &c.Auth, c.Origin, nil) {
		if *path != "" {
			*path = "a file"
		}
	}
	c.Hosts, c.Thresholds, c.Boundaries, c.On, c.Balancer, c.Seed = nil, nil, nil, On{}, monitor.BalancerConfig{}, 0
	var keys map[string]json.RawMessage
	if b, err := json.Marshal(&c); err != nil || json.Unmarshal(b, &keys) != nil {
		return nil // no plan that was read or made
	}
	return keys
}
