// Package storage says what a client can ask of a data service: an Op is the
// question, a Client answers it, a Driver brings the clients of a protocol.
//
// It knows no protocol and no load. Drivers live in the folders below it and
// never learn who drives them; workloads make Ops, the engine runs them.
package storage

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// An Op is one operation of one client. It is plain data, so that it can be
// planned, seeded, sent to another machine and handed to an external command.
type Op struct {
	Kind    Kind
	Path    string        // below the target's URL, unescaped, without a leading slash
	Source  string        // Copy: URL the bytes come from. Move: the path that the file or folder has now
	Size    int64         // Write: bytes to create. Read: bytes the whole file is expected to have; negative means unknown
	Seed    uint64        // Write: which content to create, as package content makes it
	Ranges  []Range       // Read: parts wanted, in order; nil means the whole file
	Chunk   int           // bytes per request on the wire; 0 lets the driver choose
	Ahead   int           // Read: requests of Chunk bytes in flight at once; 0 lets the driver choose
	Sum     string        // Read, Checksum: algorithm ("adler32", "crc32c", "md5"). A Read with a Sum passes its payload through memory and returns its checksum; one without may drop it in the kernel
	Plain   bool          // Read, Write: without the page checksums that the protocol may have (root://: kXR_read and kXR_write instead of kXR_pgread and kXR_pgwrite)
	Keep    bool          // Read: leave the file open, where the protocol opens files, for this client's next Read of the same path
	Folder  bool          // Remove: Path is a folder, and shall go wherever the service has it (root://: on each data server)
	Dest    string        // Read of a whole file: path of a file of this machine that takes the payload; it is made, or emptied first, and stays, whatever became of the read. Its disk's failures wrap ErrScratch. Empty: the payload is dropped
	Sync    bool          // Write: have the bytes put on stable storage before the file is closed, where the protocol can ask for that
	Timeout time.Duration // the whole operation; 0 means none
}

// Deadline returns until when o may last that begins now, zero for ever.
func (o *Op) Deadline() time.Time {
	if o.Timeout == 0 {
		return time.Time{}
	}
	return time.Now().Add(o.Timeout)
}

// CheckPath refuses paths that would leave the target: those with . or .. for
// one of their elements. Its error wraps fs.ErrInvalid.
func CheckPath(path string) error {
	if !strings.Contains(path, ".") {
		return nil
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return fmt.Errorf("path %q: . and .. cannot stand in it: %w", path, fs.ErrInvalid)
		}
	}
	return nil
}

// A Range is a part of a file.
type Range struct {
	Offset int64 // bytes from the start
	Length int64 // bytes
}

// A Result is what an operation brought back besides payload.
type Result struct {
	Size       int64         // Stat, Read: bytes the whole file has, negative if unknown
	Sum        string        // Read with Op.Sum, Checksum: "algorithm:hex", lower case
	Entries    []Entry       // List
	Incomplete bool          // List: made for browsers, so that entries may be missing and sizes may be unknown
	Servers    []string      // Locate: host:port of those that have the file
	Discarded  int64         // payload bytes that were counted but dropped before they reached memory
	Wire       int64         // bytes read and written on connections, protocol included; 0 where the driver cannot know
	Waits      int           // how often the service told the client to wait and ask again
	Waited     time.Duration // how long the client did so
	Reopened   int           // how often a file was opened again because its data server was lost
	Process    *Usage        // what an external program used; nil for native clients
}

// An Entry is one line of a listing.
type Entry struct {
	Name string // last path element, or a path below the listed folder
	Size int64  // bytes, negative if unknown
	Dir  bool
}

// Usage is what the operating system charged an external program.
type Usage struct {
	User, System time.Duration // CPU time
	MaxRSS       int64         // bytes
	ExitCode     int
}

// A Client is one virtual client's session with one service. It connects
// when its first operation asks for it, and again after its connection broke.
// It is used by one goroutine at a time.
type Client interface {
	// Do runs op to its end and tells p what happens as it happens. It
	// returns soon after ctx ends or op.Timeout passes, whichever is first.
	// Its error is an *OpError around a sentinel of this package or of the
	// standard library (fs.ErrNotExist, fs.ErrPermission, errors.ErrUnsupported).
	// The Result's Wire and Discarded are filled in also beside an error.
	Do(ctx context.Context, op *Op, p Progress) (Result, error)
	// Close ends the session. The client may be used again: it reconnects.
	Close() error
}

// Progress hears what only the protocol can know. It is called by the
// goroutine that called Do (or by one that Do waits for, never two at once).
type Progress interface {
	Reached(Phase)        // once for each phase that the operation went through
	Moved(n int)          // n more payload bytes crossed the wire
	ServedBy(host string) // host:port of the data server, once redirects are followed; "" means the target itself
}

// A Service is one target, opened by its driver: what all its clients share
// (resolved names, TLS settings, credentials). It is safe for concurrent use.
type Service interface {
	// Client returns a new client. It does not touch the network.
	Client() Client
	// Close frees what the service holds; its clients are closed before.
	Close() error
}

// A Target is what a driver needs to know to open a service.
type Target struct {
	URL     *url.URL
	Cred    Credentials
	Command []string // driver command: the program and its arguments, with placeholders
	Shared  bool     // all clients of the service use the same connection to a server, where the protocol can do that
	Reach   Reach    // nil: servers are reached at their own addresses
}

// A Reach says where a client connects to get to a server, which keeps its
// name for all else (TLS, Kerberos, the protocol itself). It is asked for each
// connection, for servers that the target redirects to as well, by many
// goroutines at once.
type Reach func(ctx context.Context, host string, port uint16) (netip.AddrPort, error)

// A Reporter is a Service whose protocol can ask servers about themselves.
type Reporter interface {
	// Servers returns host:port of the target itself and, if it is a
	// redirector, of all data servers that it knows; the target comes first.
	Servers(ctx context.Context) ([]string, error)
	// Report returns what one of them says of itself, in the protocol's own
	// format (XRootD: the XML of kXR_query stats).
	Report(ctx context.Context, server string) ([]byte, error)
}

// A Driver opens services for the URL schemes it serves.
type Driver struct {
	Name    string
	Schemes []string
	Kinds   []Kind // what its clients can do; checked when the plan is made
	// Open checks t without touching the network and returns its service.
	Open func(ctx context.Context, t Target) (Service, error)
}
