package transfer

import (
	"encoding/json"
	"fmt"
	"time"
)

// What agents ask a coordinator, below its URL. All are POST with JSON, and the
// token of the site. An agent that the coordinator does not know (any more) is
// answered 410, and says hello again.
const (
	RegisterPath   = "/api/v1/agent/hello"   // Hello, answered by Welcome
	DeregisterPath = "/api/v1/agent/goodbye" // Goodbye, answered by {}
	WorkPath       = "/api/v1/agent/work"    // WorkAsk, answered by Work: at once if there is any, else after a while
	ReportPath     = "/api/v1/agent/report"  // Report, answered by Ack
	ClockPath      = "/api/v1/agent/clock"   // {}, answered by Clock
)

// A Hold is an attempt that an agent knows of: it runs, or its outcome was not
// acknowledged yet.
type Hold struct {
	Item  int64 `json:"item"`
	Epoch int64 `json:"epoch"`
}

// A Register is how an agent comes in. One that comes in with another Session is
// another process: what the one before held, and this one does not name, is lost.
type Register struct {
	Site    string `json:"site"`
	Session string `json:"session"` // random, of this process
	Version string `json:"version"`
	Host    string `json:"host"`
	URL     string `json:"url,omitempty"` // of its door; "": it only dials out
	Pin     string `json:"pin,omitempty"` // SHA-256 of the door's certificate, if it is self-made
	Slots   int    `json:"slots"`         // copies at once
	Free    int64  `json:"free_bytes"`    // of its root; -1: not known
	Holding []Hold `json:"holding,omitempty"`
	Root    string `json:"root,omitempty"`     // what its root is called, a random text that is kept there; "": it is read only
	NewRoot bool   `json:"new_root,omitempty"` // the site's root may be another one than before
}

// Hidden is the folder of temporaries below the root of a site.
const Hidden = ".weir"

// PartName is what a file is called while an agent writes it, below the root of its
// destination.
func PartName(item, epoch int64) string { return fmt.Sprintf("%s/%d.%d.part", Hidden, item, epoch) }

// A Deregister says that an agent ends. Leases that it does not hold go elsewhere, or
// wait for its next process.
type Deregister struct {
	Site    string `json:"site"`
	Session string `json:"session"`
	Holding []Hold `json:"holding,omitempty"` // what it could not tell the end of
}

// A Welcome answers a Hello.
type Welcome struct {
	Now      time.Time       `json:"now"`
	Issuer   string          `json:"issuer"`         // of the tokens that the door is to accept
	Audience []string        `json:"audience"`       // of which tokens for this door name one
	Keys     json.RawMessage `json:"keys,omitempty"` // the issuer's public keys, a JWK set (RFC 7517)
	Report   time.Duration   `json:"report_ns"`      // how often to report, at least; 0 is 1 s
}

// A Clock is what time it is at the coordinator.
type Clock struct {
	Now time.Time `json:"now"`
}

// A PollRequest asks for something to do. Holding is all that the agent knows of: a
// lease of its site that is not in it was not received, or is forgotten.
type PollRequest struct {
	Site    string  `json:"site"`
	Session string  `json:"session"`
	Slots   int     `json:"slots"`      // how many leases it can begin now
	Free    int64   `json:"free_bytes"` // -1: not known
	Holding []Hold  `json:"holding,omitempty"`
	Scans   []int64 `json:"scans,omitempty"` // that run
}

// Work is what an agent is to do. When files are small there are more leases than
// the agent has slots, so that there is always a next one: they wait at the agent
// in their order, are in Holding and, with no Stage, in the Progress of reports,
// which renew them. It need not ask for them: one WorkAsk is always open.
type Work struct {
	Leases []Lease `json:"leases,omitempty"`
	Cancel []Hold  `json:"cancel,omitempty"` // attempts of cancelled requests: to break off at once, with what has arrived
	Lost   []Hold  `json:"lost,omitempty"`   // attempts that are no longer this agent's: what has arrived is kept for another one
	Scans  []Scan  `json:"scans,omitempty"`
	Drop   []int64 `json:"drop,omitempty"` // scans to break off
}

// A Scan asks an agent what is in a folder of its site, with checksums.
type Scan struct {
	ID   int64  `json:"id"`
	Path string `json:"path"` // below the site's root, slashes, no leading one; "" is all of it
}

// A Report is what an agent has to tell. What is in it is the coordinator's when
// it is acknowledged, until then the agent tells it again: outcomes are known by
// item and epoch, files of scans by their paths, samples by their times.
type Report struct {
	Site     string     `json:"site"`
	Session  string     `json:"session"`
	Number   int64      `json:"number"` // grows by one in a session; the same number is the same report
	Free     int64      `json:"free_bytes"`
	Progress []Progress `json:"progress,omitempty"` // of each attempt that runs or waits for a slot: it renews the lease
	Outcomes []Outcome  `json:"outcomes,omitempty"`
	Found    []Found    `json:"found,omitempty"`
	Samples  []Sample   `json:"samples,omitempty"`
	Parts    []Hold     `json:"parts,omitempty"` // temporaries at the site that no attempt there works on, now and then; at most MaxParts
}

// MaxParts is how many temporaries are told of at a time.
const MaxParts = 1000

// An Ack takes a report over.
type Ack struct {
	Now    time.Time `json:"now"`
	Until  time.Time `json:"until"`            // to which the leases were renewed
	Cancel []Hold    `json:"cancel,omitempty"` // as in Work
	Lost   []Hold    `json:"lost,omitempty"`
	Drop   []int64   `json:"drop,omitempty"` // scans to break off
	Over   []Hold    `json:"over,omitempty"` // temporaries of Report.Parts that nobody will go on with: to be removed
}

// A Found is a part of what a scan has found. The last one has Done; Problem says
// why the scan broke off, or that a file could not be read.
type Found struct {
	Scan    int64       `json:"scan"`
	Files   []FoundFile `json:"files,omitempty"`
	Done    bool        `json:"done,omitempty"`
	Problem string      `json:"problem,omitempty"`
}

// A FoundFile is a file at a site.
type FoundFile struct {
	Path  string `json:"path"` // below the scan's folder
	Size  int64  `json:"size_bytes"`
	Adler string `json:"adler32,omitempty"` // 8 hex digits
}

// A Sample is what the host of an agent went through in a second or so. Rates
// are per second; what cannot be seen is 0.
type Sample struct {
	Time       time.Time `json:"time"` // end of the span, by the coordinator's clock
	Seconds    float64   `json:"duration_seconds"`
	Cores      int       `json:"cores"`
	CPU        float64   `json:"cpu"`    // busy share of all cores, 0 to 1
	Memory     float64   `json:"memory"` // used share, 0 to 1
	Total      int64     `json:"memory_bytes"`
	In         float64   `json:"received_bytes_per_second"` // all interfaces
	Out        float64   `json:"sent_bytes_per_second"`
	Read       float64   `json:"read_bytes_per_second"` // all disks
	Write      float64   `json:"write_bytes_per_second"`
	OwnCPU     float64   `json:"own_cpu_seconds"` // of the agent, in the span
	OwnMemory  int64     `json:"own_resident_bytes"`
	Running    int       `json:"running"`                       // copies at the end of the span
	MovedBytes float64   `json:"moved_bytes_per_second"`        // by the agent's copies
	DoorIn     int64     `json:"door_received_bytes,omitempty"` // payload through the door, in the span
	DoorOut    int64     `json:"door_sent_bytes,omitempty"`
}
