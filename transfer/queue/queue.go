// Package queue keeps requests, their files and the attempts at them in a
// database: what is to be moved, by whom just now, and what became of it.
//
// It is the state machine of package transfer. Whatever changes a file changes
// the counters of its request, and, with the last file, the request's status, in
// the same transaction. An order to move a file (a lease) has an epoch; what the
// holder of an older one reports is kept as an attempt and changes nothing.
// Nothing here runs by itself and nothing touches the network: the coordinator
// calls Work, Waiting, Take, Report and Expire again and again.
package queue

import (
	"time"

	"weir/catalog"
	"weir/transfer"
)

// Options are what a queue is opened with. The zero value serves.
type Options struct {
	Now    func() time.Time   // the coordinator's clock; nil is time.Now
	Rand   func() float64     // in [0, 1), for the jitter of pauses; nil is math/rand/v2's
	Lease  time.Duration      // how long a mover may be silent; 0 is a minute
	Grace  time.Duration      // how long the destination may be asked after that; 0 is two minutes
	Shares map[string]float64 // weights of shares; one that is not named weighs 1
}

// A Candidate is a file whose turn it is, and the sites that it can come from.
type Candidate struct {
	transfer.Item
	Request   int64
	Dest      string
	Want      transfer.Mode // what the request asks for; "" is whatever works
	Share     string
	Priority  int
	Unchecked bool
	Replicas  []catalog.Replica // at sites that are up, none of them known to be bad; never empty
}

// Want says which candidates are asked for.
type Want struct {
	Dest string
	N    int      // at most so many
	Busy []string // sources that are of no use now, as their limits are reached
}

// A Choice is who brings a file.
type Choice struct {
	Item   int64
	Source string
	Mode   transfer.Mode
}

// A Change is what a report, or a lease that ended, did.
type Change struct {
	Item    int64
	Epoch   int64
	Request int64
	State   transfer.State  // of the file, now
	Stale   bool            // the report was of an old epoch or came twice: kept, and nothing changed
	Ended   transfer.Status // of the request, if this file was its last; else ""
}

// A Missing is a lease whose holder was not heard of in time. Its file may be at
// the destination all the same: whoever knows asks there, and says with Report
// what he found: success, or LeaseLost.
type Missing struct {
	transfer.Lease
	Since time.Time // it was last heard of
}

// A Filter says which requests are listed. Empty fields admit all.
type Filter struct {
	Status  []transfer.Status
	To      string
	By      string
	Dataset string
	Before  int64 // requests with smaller ids, for the next page
	N       int   // at most so many; 0 is 100
}

// An Event is something that happened to a request. Ids grow in the order in
// which events become visible.
type Event struct {
	ID      int64           `json:"id"`
	At      time.Time       `json:"at"`
	Request int64           `json:"request"`
	Item    int64           `json:"item,omitempty"` // of a file that failed
	Status  transfer.Status `json:"status"`         // of the request, after it
	Text    string          `json:"text"`
}
