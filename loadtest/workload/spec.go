package workload

import (
	"weir/internal/tags"
	"weir/internal/unit"
	"weir/storage"
)

// A Kind is a kind of work of the clients of a run.
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
	CopyWork       Kind = "copy"        // third-party copies from an origin; in a record of transfers copies that no client of weir has made
)

// Kinds returns the kinds of work that a scenario can have.
func Kinds() []string { return tags.Words[Work]("kind") }

// A Session is the lifetime of a client's connections and logins.
type Session string

// Sessions of clients.
const (
	KeptSession   Session = "kept"   // until the client ends
	FreshSession  Session = "fresh"  // for one task
	SharedSession Session = "shared" // common to all clients of a process
)

// Work describes the work of clients. It is the scenario's key workload.
type Work struct {
	Kind     Kind               `json:"kind" default:"read" enum:"read,write,copy,mix,metadata,login,job,command-job" doc:"Kind of work."`
	Mix      map[string]float64 `json:"mix,omitempty" default:"{stat: 8, list: 1, mkdir: 1}" when:"kind: metadata" doc:"Operations and their weights, for kinds mix and metadata."`
	Session  Session            `json:"session" default:"kept" enum:"kept,fresh,shared" doc:"Connection and login: kept between tasks, fresh for each, or shared by all."`
	Resume   storage.Resumption `json:"tls_resumption,omitempty" enum:"none,client,shared" doc:"TLS sessions that new connections resume. Default: none."`
	Pick     string             `json:"pick" default:"random" enum:"random,sequential,zipf" doc:"Choice of the next file."`
	Skew     float64            `json:"skew,omitempty" default:"1.2" when:"pick: zipf" doc:"Exponent of pick: zipf, above 1."`
	Think    Span               `json:"think" default:"0s" doc:"Pause after each task: fixed, uniform or exponential."`
	Chunk    unit.Size          `json:"chunk,omitempty" doc:"Bytes per request; 0: chosen by the driver."`
	InFlight int                `json:"in_flight,omitempty" doc:"Concurrent requests of a client; 0: chosen by the driver."`
	Sync     bool               `json:"sync,omitempty" doc:"Flush each written file to stable storage before it is closed."`
	Plain    bool               `json:"plain,omitempty" doc:"Read and write without the page checksums of root://."`
	KeepOpen bool               `json:"keep_open,omitempty" doc:"Keep a file open for the client's next read, if the protocol opens files."`
	Part     *Part              `json:"part,omitempty" doc:"Read parts of files."`
	Job      *Job               `json:"job,omitempty" doc:"Work of a job of kind job: it reads events of a file and computes on each."`
	Size     Dist               `json:"size,omitzero" default:"1MiB" when:"kinds that write" doc:"Size of written files: fixed, uniform or by weights."`
	Keep     bool               `json:"keep,omitempty" doc:"Keep written files after the run."`
	Verify   unit.Fraction      `json:"verify" default:"1%" doc:"Share of operations whose payload is verified with a checksum."`
	Sum      string             `json:"checksum" default:"adler32" enum:"adler32,crc32c,md5,sha256" doc:"Checksum algorithm; with auth.method: s3 the default is md5."`
	Timeout  unit.Duration      `json:"timeout" default:"1m" doc:"Time limit of an operation; default of kind command-job: 1h."`
	Retries  int                `json:"retries,omitempty" default:"0" doc:"Retries of a failed operation; 0: off."`
}

// A Part describes the bytes of a file that a read requests: Count ranges of Size bytes, at random
// or one after the other.
type Part struct {
	Size  unit.Size `json:"size" doc:"Bytes per part."`
	Count int       `json:"count,omitempty" default:"1" doc:"Parts per operation."`
	Order string    `json:"order,omitempty" default:"random" enum:"random,sequential" doc:"Position of the parts in the file."`
}

// A File is one file of a file set.
type File struct {
	Path string // below the target
	Size int64  // bytes, negative if unknown
	Seed uint64 // seed of its content in package content, if Made
	Made bool   // made by this run, so its content is known
}

// A Span is a duration that may be drawn: fixed, uniform or exponential.
type Span struct {
	Fixed       unit.Duration   `json:"fixed,omitempty"`
	Uniform     []unit.Duration `json:"uniform,omitempty"`     // from, to
	Exponential unit.Duration   `json:"exponential,omitempty"` // mean
}

// A Dist is a size that may be drawn: fixed, uniform, or by weights.
type Dist struct {
	Fixed   unit.Size          `json:"fixed,omitempty"`
	Uniform []unit.Size        `json:"uniform,omitempty"` // from, to
	Weights map[string]float64 `json:"weights,omitempty"` // size: weight
}
