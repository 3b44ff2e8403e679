// Package inject has a service make the copies of a data challenge. The packages below it are its
// injectors: direct sends third-party requests to the sites, fts and rucio send requests to these
// services, and simulated is a model of sites and links for tests and plans.
package inject

import (
	"context"
	"time"

	"weir/loadtest/challenge"
	"weir/storage"
)

// A Copy is one copy that is to be made.
type Copy struct {
	ID     int64 // unique in the challenge, also after it was resumed
	Link   int   // index of the link in the challenge
	Source File
	Dest   string // path of the copy below the URL of its destination; the name is free
}

// A File is a file at a source, which was made for the challenge.
type File struct {
	Path string // below the URL of the site
	Size int64  // bytes
	Sum  string // "adler32:hex"
}

// A State is the state of a copy.
type State string

// States of copies, in their order. The last three are final.
const (
	Queued    State = "queued"    // the service has accepted the request
	Running   State = "running"   // bytes are being moved, as far as the service reports that
	Done      State = "done"      // the service reports success
	Failed    State = "failed"    //
	Cancelled State = "cancelled" // by Cancel
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// A Report is the news of one copy. Each copy has at least one report, and exactly one with a final
// state, which is its last.
type Report struct {
	ID    int64
	At    time.Time // of the news, on the clock of this machine
	State State
	Moved int64 // bytes that have been moved so far; -1 if the service does not report it

	// of final states
	Begin    time.Time     // of the transfer of bytes, as the service has it; zero: unknown
	Verified bool          // the service has compared checksums
	Class    storage.Class // of failure
	Reason   string        // of failure, one line without secrets
	Site     string        // site to which the failure belongs; "": unknown
	Label    bool          // the SciTag was passed on
	// credentials of the copy had ended, or were refused as such
	Expired bool
	// the copy failed because there is a file at its path: the challenge did not make that file
	Exists bool
}

// A Health is the state of the transfer service, as its clients experience it.
type Health struct {
	Requests int           // requests in the last interval
	Failed   int           // of these without a usable response
	Latency  time.Duration // mean time to the response
	Busy     bool          // the service requested a pause (status 429 or 503)
	Reason   string        // of the last failure
	// Issuer is the state of the server that issues the credentials for the service; nil: it had no requests
	Issuer *Health
}

// An Injector has copies made. Its methods are safe for concurrent use.
type Injector interface {
	// Check contacts the service and, where the injector needs them, the sites. It changes nothing there.
	Check(ctx context.Context) error
	// Start requests copies and returns soon: the injector's Config.Report receives their news. A request
	// that fails is reported as a failed copy. The error is for the end of ctx before Start only, and then
	// no copy is requested.
	Start(ctx context.Context, copies []Copy) error
	// Cancel has copies stopped that have not ended. Their final reports follow within 10 s if the service
	// answers.
	Cancel(ctx context.Context, ids []int64) error
	// Resume takes over copies that another process of the same challenge has started, after a kill. Copies
	// that the service does not know are reported as failed.
	Resume(ctx context.Context, copies []Copy) error
	// Health returns the state of the service since the last call.
	Health() Health
	// Close ends the injector, without its copies: they are cancelled before.
	Close() error
}

// A Remover is an Injector that removes copies itself, because its service has a catalog of them: they
// must not be removed at the site. Its service chooses the paths of copies: Copy.Dest is Copy.Source.Path.
type Remover interface {
	Injector
	// Remove has copies removed that were made, and returns soon. The service removes them later; until
	// then no other copy of the same file to the same site begins.
	Remove(ctx context.Context, ids []int64) error
	// Clean ends everything of the challenge that the service still has, and returns when it has
	// accepted that.
	Clean(ctx context.Context) error
}

// A Config is what every injector needs.
type Config struct {
	Challenge *challenge.Challenge
	// Credentials returns the credentials of a site with fresh tokens.
	Credentials func(site string) (storage.Credentials, error)
	// Report receives the news of copies. It is called by one goroutine at a time and returns quickly.
	Report func(Report)
	// Drivers are those of this program, for injectors that contact the sites.
	Drivers []storage.Driver
	// Dir is a folder for the state that an injector needs after a kill, such as ids of jobs.
	Dir string
}
