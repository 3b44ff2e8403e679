package emulator

import "weir/link"

// The two ways of a link.
const (
	toClients   = 0
	fromClients = 1
)

// A setting is what can be changed while a link is up.
type setting struct {
	Spec link.Spec `json:"spec"`
	Down bool      `json:"down"`
}

// both returns the parameters to and from the clients.
func (s setting) both() [2]params {
	return [2]params{paramsOf(s.Spec, s.Spec.Rate, s.Down), paramsOf(s.Spec, s.Spec.FromClients(), s.Down)}
}
