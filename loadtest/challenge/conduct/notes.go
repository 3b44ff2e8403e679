package conduct

import "time"

// notes remember which events were written, so that each is written once.
type notes struct {
	stage  int // the present one, from 1
	seen   map[string]bool
	last   map[string]time.Time
	worked time.Time // when records were written
	// when the health of the transfer service was requested
	healthy time.Time
}

// begin begins a stage, in which first failures and limits are written again.
func (n *notes) begin(stage int) { n.stage, n.seen = stage, nil }

// first reports whether an event of this name is the first of its stage.
func (n *notes) first(name string) bool {
	if n.seen[name] {
		return false
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[name] = true
	return true
}

// due reports whether an event of this name was not written for the time pause.
func (n *notes) due(name string, now time.Time, pause time.Duration) bool {
	if at, ok := n.last[name]; ok && now.Sub(at) < pause {
		return false
	}
	if n.last == nil {
		n.last = map[string]time.Time{}
	}
	n.last[name] = now
	return true
}
