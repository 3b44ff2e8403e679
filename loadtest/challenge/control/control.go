// Package control decides when a data challenge requests copies, so that each link has its target
// rate: a value without a clock, network or goroutines.
package control

import (
	"time"

	"weir/loadtest/challenge"
)

// A Limit has the fixed properties of a link.
type Limit struct {
	Source, Dest int   // indices of its sites
	InFlight     int   // largest number of copies at once
	FileBytes    int64 // mean size of a file
}

// Options configure New.
type Options struct {
	Links   []Limit
	Sites   []int         // largest number of copies at once of each site; 0: no limit
	Ceiling float64       // bytes/s of all links together; 0: no limit
	Delay   time.Duration // typical time from a request to the first byte: seconds with direct and FTS, tens of seconds with Rucio
}

// A Seen is what one link did since the last decision.
type Seen struct {
	Target   float64 // bytes/s at present
	Moved    int64   // bytes that were moved since the last decision, also by copies that have not ended or failed
	InFlight int     // copies that were requested and have not ended, with those of the last decision
	Queued   int     // of these not begun by the service, as far as it reports that
	Left     int64   // bytes of the copies in flight that are still to be moved; their sizes if that is unknown
	Done     int     // copies that ended with success since the last decision
	Failed   int     // copies that failed since the last decision
	Wrong    int64   // bytes, moved before, of complete copies of these that failed their verification: they are due again
}

// A Decision is what a link may do until the next decision.
type Decision struct {
	Start   int              // copies to request now
	Allowed int              // copies in flight that the controller allows
	Reason  challenge.Reason // for not more than that
}
