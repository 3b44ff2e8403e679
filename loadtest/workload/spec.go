package workload

import (
	"weir/internal/unit"
	"weir/storage"
)

// A Kind is what the clients of a run do.
type Kind string

// Kinds of work.
const (
	ReadWork       Kind = "read"
	WriteWork      Kind = "write"
	MixWork        Kind = "mix"         // reads and writes, by weight
	MetadataWork   Kind = "metadata"    // operations on names, by weight
	LoginWork      Kind = "login"       // sessions that do nothing else
	JobWork        Kind = "job"         // analysis jobs
	CommandJobWork Kind = "command-job" // the user's own program
	CopyWork       Kind = "copy"        // of a record of transfers: third-party copies, no clients of weir
)

// Kinds returns the kinds of work that a scenario can ask for.
func Kinds() []string {
	all := []Kind{ReadWork, WriteWork, MixWork, MetadataWork, LoginWork, JobWork, CommandJobWork}
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = string(k)
	}
	return names
}

// A Session says how long a client's connections and logins last.
type Session string

// Sessions of clients.
const (
	KeptSession   Session = "kept"   // until the client ends
	FreshSession  Session = "fresh"  // for one task
	SharedSession Session = "shared" // those of all clients of a process are the same
)

// Work says what clients do. It is the scenario's key workload.
type Work struct {
	Kind    Kind               `json:"kind"                yaml:"kind"`
	Mix     map[string]float64 `json:"mix,omitempty"       yaml:"mix,omitempty"` // kind of operation: weight; for mix and metadata
	Session Session            `json:"session"             yaml:"session"`
	// which TLS sessions new connections resume; "" is none
	Resume   storage.Resumption `json:"tls_resumption,omitempty" yaml:"tls_resumption,omitempty"`
	Pick     string             `json:"pick"                yaml:"pick"`                // random, sequential, zipf
	Skew     float64            `json:"skew,omitempty"      yaml:"skew,omitempty"`      // zipf's exponent s, > 1
	Think    Span               `json:"think"               yaml:"think"`               // pause after a task
	Chunk    unit.Size          `json:"chunk,omitempty"     yaml:"chunk,omitempty"`     // bytes per request
	InFlight int                `json:"in_flight,omitempty" yaml:"in_flight,omitempty"` // requests of one client at once
	// written files are put on stable storage before they are closed
	Sync     bool          `json:"sync,omitempty"      yaml:"sync,omitempty"`
	Plain    bool          `json:"plain,omitempty"     yaml:"plain,omitempty"`     // without the page checksums that the protocol may have
	KeepOpen bool          `json:"keep_open,omitempty" yaml:"keep_open,omitempty"` // files that were read stay open for the client's next read
	Part     *Part         `json:"part,omitempty"      yaml:"part,omitempty"`      // read parts instead of whole files
	Job      *Job          `json:"job,omitempty"       yaml:"job,omitempty"`       // kind job
	Size     Dist          `json:"size,omitzero"       yaml:"size,omitempty"`      // write: bytes of a new file
	Keep     bool          `json:"keep,omitempty"      yaml:"keep,omitempty"`      // write: leave the files where they are
	Verify   unit.Fraction `json:"verify"              yaml:"verify"`              // operations whose payload is read and checked
	Sum      string        `json:"checksum"            yaml:"checksum"`            // algorithm used to verify
	Timeout  unit.Duration `json:"timeout"             yaml:"timeout"`             // of one operation
	Retries  int           `json:"retries,omitempty"   yaml:"retries,omitempty"`   // of one operation; 0 is off
}

// A Part says which bytes of a file a read asks for: Count ranges of Size
// bytes, at random or one after the other.
type Part struct {
	Size  unit.Size `json:"size"            yaml:"size"`
	Count int       `json:"count,omitempty" yaml:"count,omitempty"`
	Order string    `json:"order,omitempty" yaml:"order,omitempty"` // random, sequential
}

// A File is one file of a file set.
type File struct {
	Path string // below the target
	Size int64  // bytes, negative if unknown
	Seed uint64 // what package content made it from, if Made
	Made bool   // made by this run, so its content is known
}

// A Span is a duration that may be drawn: fixed, uniform or exponential.
type Span struct {
	Fixed       unit.Duration   `json:"fixed,omitempty"       yaml:"fixed,omitempty"`
	Uniform     []unit.Duration `json:"uniform,omitempty"     yaml:"uniform,omitempty"`     // from, to
	Exponential unit.Duration   `json:"exponential,omitempty" yaml:"exponential,omitempty"` // mean
}

// A Dist is a size that may be drawn: fixed, uniform, or by weights.
type Dist struct {
	Fixed   unit.Size          `json:"fixed,omitempty"   yaml:"fixed,omitempty"`
	Uniform []unit.Size        `json:"uniform,omitempty" yaml:"uniform,omitempty"` // from, to
	Weights map[string]float64 `json:"weights,omitempty" yaml:"weights,omitempty"` // size: weight
}
