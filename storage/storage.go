// Package storage defines the operations of a client of a data service. An Op is a request, a
// Client carries it out, and a Driver provides the clients of one protocol.
//
// The package contains neither protocols nor load. Drivers are in the packages below it; package
// workload creates Ops and package engine runs them.
package storage

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An Op is one operation of one client. It is plain data, so that it can be planned, reproduced from a seed, sent
// to another machine and passed to an external program.
type Op struct {
	Kind   Kind
	Path   string  // below the target's URL, unescaped, without a leading slash
	Source string  // Copy: path of the file below the URL of the target's Origin. Move: the path that the file or folder has now
	Size   int64   // Write: bytes to create. Read: bytes the whole file is expected to have; negative means unknown
	Seed   uint64  // Write: which content to create, as package content makes it
	Ranges []Range // Read: parts wanted, in order; nil means the whole file
	Chunk  int     // bytes per request on the wire; 0 lets the driver choose
	Ahead  int     // Read: requests of Chunk bytes in flight at once; 0 lets the driver choose
	// Read, Checksum: algorithm ("adler32", "crc32c", "md5"). A Read with a Sum passes its payload through memory and returns its
	// checksum; one without may drop it in the kernel
	Sum string
	// Read, Write: without the page checksums that the protocol may have (root://: kXR_read and kXR_write instead of kXR_pgread
	// and kXR_pgwrite)
	Plain  bool
	Keep   bool // Read: leave the file open, where the protocol opens files, for this client's next Read of the same path
	Folder bool // Remove: Path is a folder, and shall go wherever the service has it (root://: on each data server)
	// Read of a whole file: path of a file of this machine that receives the payload; it is made,
	// or emptied first, and stays, even if the read fails. Its disk's failures wrap ErrScratch.
	// Empty: the payload is dropped
	Dest    string
	Sync    bool          // Write: the bytes are put on stable storage before the file is closed, if the protocol supports it
	Timeout time.Duration // the whole operation; 0: unlimited
}

// Deadline returns when o times out if it begins now, or the zero time if it never does.
func (o *Op) Deadline() time.Time {
	if o.Timeout == 0 {
		return time.Time{}
	}
	return time.Now().Add(o.Timeout)
}

// CheckPath returns an error that wraps fs.ErrInvalid if path has an element . or .., with which it could leave the
// target.
func CheckPath(path string) error {
	if !strings.HasPrefix(path, ".") && !strings.Contains(path, "/.") {
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

// Check returns an error that wraps fs.ErrInvalid if no file can have the range.
func (r Range) Check() error {
	if r.Offset < 0 || r.Length < 0 || r.Offset+r.Length < 0 {
		return fmt.Errorf("range of %d bytes at %d: %w", r.Length, r.Offset, fs.ErrInvalid)
	}
	return nil
}

// A Result has the results of an operation besides payload.
type Result struct {
	Size       int64         // Stat, Read: bytes the whole file has, negative if unknown
	Sum        string        // Read with Op.Sum, Checksum: "algorithm:hex", lower case
	Entries    []Entry       // List
	Incomplete bool          // List: made for browsers, so that entries may be missing and sizes may be unknown
	Omitted    int           // List: entries that are left out, because no operation can name them
	Omission   error         // List: the reason for the first of them
	Folder     bool          // Stat: the path is that of a folder
	Encoding   string        // Stat, Read without Op.Size: HTTP content encoding that was not requested: the content may not be the file's
	Servers    []string      // Locate: host:port of the servers with the file
	Discarded  int64         // payload bytes that were counted but dropped before they reached memory
	Wire       int64         // bytes read and written on connections, protocol included; 0 if the driver cannot determine it
	Waits      int           // number of times that the service made the client wait and repeat the request
	Waited     time.Duration // total time of these waits
	Signed     int           // requests that the service required to be signed, and that were
	Reopened   int           // number of times that a file was opened again because its data server was lost
	Renewed    int           // credentials that were read again since the last operation of any client, because they were renewed
	Handshake  time.Duration // duration of the first TLS handshake; 0 without TLS
	Handshakes int           // TLS handshakes
	Resumed    int           // TLS handshakes that resumed an earlier TLS session
	Process    *Usage        // usage of an external program; nil for native clients
}

// Omit counts an entry of a listing that is left out because of err.
func (r *Result) Omit(err error) {
	if r.Omitted++; r.Omission == nil {
		r.Omission = err
	}
}

// An Entry is one line of a listing.
type Entry struct {
	Name string // last path element, or a path below the listed folder
	Size int64  // bytes, negative if unknown
	Dir  bool
}

// Usage is the resource usage of an external program, as the operating system reports it.
type Usage struct {
	User, System time.Duration // CPU time
	MaxRSS       int64         // bytes
	ExitCode     int
}

// A Client is one virtual client's session with one service. It connects for its first operation, and again after
// its connection broke. It must be used by one goroutine at a time.
type Client interface {
	// Do runs op to its end and reports to p as it proceeds. It returns soon after ctx ends or op.Timeout has
	// passed, whichever comes first. Its error is an *OpError around a sentinel of this package or of the standard
	// library (fs.ErrNotExist, fs.ErrPermission, errors.ErrUnsupported). The Result's Wire, Discarded and
	// handshakes are also set if there is an error.
	Do(ctx context.Context, op *Op, p Progress) (Result, error)
	// Close ends the session. The client may be used again: it reconnects.
	Close() error
}

// Progress receives the events of a running operation that only the driver can observe. Its methods
// are called by the goroutine that called Do, or by others that Do waits for, but never by two at
// once.
type Progress interface {
	Reached(Phase)        // once for each phase that the operation passes
	Moved(n int)          // n more payload bytes crossed the wire
	ServedBy(host string) // host:port of the data server, once redirects are followed; "" means the target itself
}

// NoProgress ignores the progress of an operation.
type NoProgress struct{}

// Reached implements Progress.
func (NoProgress) Reached(Phase) {}

// Moved implements Progress.
func (NoProgress) Moved(int) {}

// ServedBy implements Progress.
func (NoProgress) ServedBy(string) {}

// A Service is a target that its driver has opened, with the shared state of all its clients:
// resolved names, TLS settings, credentials. It is safe for concurrent use.
type Service interface {
	// Client returns a new client. It does not touch the network.
	Client() Client
	// Close releases the service's resources. Its clients must be closed before.
	Close() error
}

// A Target has the data with which a driver opens a service.
type Target struct {
	URL     *url.URL
	Cred    Credentials
	Command []string // driver command: the program and its arguments, with placeholders
	Shared  bool     // all clients of the service use the same connection to a server, if the protocol supports that
	Reach   Reach    // nil: servers are reached at their own addresses
	Origin  *Origin  // of operations of kind Copy; nil: there are no such operations
	// TLS sessions that the connections of clients resume, if the protocol has TLS and the driver
	// its own connections
	Resume Resumption
}

// An Origin is the service from which the operations of kind Copy fetch their files. The bytes do
// not pass the client.
type Origin struct {
	URL     *url.URL
	Cred    Credentials
	Push    bool // the origin sends the file to the target; otherwise the target fetches it
	Streams int  // connections of a copy; 0: chosen by the service
	SciTag  int  // label of the flows of a copy (scitags.org); 0: no label
}

// Bounds of SciTag, which has the numbers of an experiment and an activity (scitags.org).
const (
	LeastSciTag = 65 // experiment 1, activity 1
	MostSciTag  = 65535
)

// A Resumption selects the TLS sessions that the connections of clients resume.
type Resumption string

// Resumptions.
const (
	ResumeNone   Resumption = "none"   // like "": each handshake is a full handshake
	ResumeOwn    Resumption = "client" // sessions of the same client
	ResumeShared Resumption = "shared" // sessions of all clients of the service
)

// A Reach returns the address to which a client connects to reach a server. The server keeps its
// name for everything else (TLS, Kerberos, the protocol itself). It is called for each connection,
// including connections to servers that the target redirects to, and by many goroutines at once.
type Reach func(ctx context.Context, host string, port uint16) (netip.AddrPort, error)

// A Reporter is a Service whose protocol has servers report on themselves.
type Reporter interface {
	// Servers returns host:port of the target and, if it is a redirector, of all its data servers.
	// The target comes first.
	Servers(ctx context.Context) ([]string, error)
	// Report returns the report of one of them in the protocol's own format (XRootD: the XML of kXR_query stats).
	Report(ctx context.Context, server string) ([]byte, error)
}

// A DriverName identifies a driver in plans and results.
type DriverName string

// The drivers.
const (
	WebDAV    DriverName = "webdav"
	XRootD    DriverName = "xrootd"
	FTP       DriverName = "ftp"
	Local     DriverName = "local"
	Command   DriverName = "command"
	Simulated DriverName = "simulated"
)

// A Driver opens services for its URL schemes.
type Driver struct {
	Name    DriverName
	Schemes []string
	Kinds   []Kind // the operations of its clients; checked when the plan is made
	// OpenFiles returns the largest number of open files (connections, pipes, local files) that a
	// client with inFlight concurrent requests needs. It is nil if the service is part of this
	// process and clients open nothing.
	OpenFiles func(inFlight int) int
	Ports     bool // each session needs a TCP port of this machine
	External  bool // clients are external programs
	// Open checks t, without network access, and returns its service.
	Open func(ctx context.Context, t Target) (Service, error)
}

// ClientFiles returns the largest number of open files that a client with inFlight concurrent
// requests needs.
func (d *Driver) ClientFiles(inFlight int) int {
	if d.OpenFiles == nil {
		return 0
	}
	return d.OpenFiles(inFlight)
}

// DriverNamed returns the driver of the given name. It returns the zero Driver if no driver has it.
func DriverNamed(drivers []Driver, name DriverName) Driver {
	for i := range drivers {
		if drivers[i].Name == name {
			return drivers[i]
		}
	}
	return Driver{}
}

// A Kind is the kind of an operation. Its text is the same as in scenarios and results.
type Kind uint8

// The kinds of operations.
const (
	Read     Kind = iota // read a file, or parts of it
	Write                // create a file
	Stat                 // size and existence of a file
	List                 // names in a folder
	Mkdir                // create a folder
	Remove               // remove a file or an empty folder
	Checksum             // request a file's checksum from the service
	Copy                 // have two services copy Op.Source of the target's Origin to Op.Path (third-party copy)
	Login                // connect and authenticate, nothing else
	Move                 // give a file or folder another name
	Locate               // find the servers that have a file
	Ping                 // check whether the service is available, on the present session
	Run                  // run a program of the user on a file
	Kinds                // number of kinds
)

func kindNames() [Kinds]string {
	return [Kinds]string{"read", "write", "stat", "list", "mkdir", "remove", "checksum", "copy", "login", "move", "locate", "ping", "run"}
}

// String returns the text of the kind.
func (k Kind) String() string {
	names := kindNames()
	return nameOf(k, names[:], "kind")
}

func nameOf[T ~uint8](i T, names []string, what string) string {
	if int(i) >= len(names) {
		return fmt.Sprintf("%s(%d)", what, i)
	}
	return names[i]
}

func parseName[T ~uint8](to *T, text []byte, names []string, what string) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("unknown %s %q: use one of %s", what, text, strings.Join(names, ", "))
	}
	*to = T(i)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	names := kindNames()
	return parseName(k, text, names[:], "operation")
}

// A Phase is a point that an operation passes on its way to its first byte.
type Phase uint8

// The phases, in the order in which an operation passes them.
const (
	Connected     Phase = iota // the transport connection is up
	Secured                    // TLS is agreed
	Authenticated              // the service has accepted the credentials
	Redirected                 // another server was named
	Opened                     // the file is open, or the response's header has arrived
	FirstByte                  // the first payload byte has arrived
	Phases                     // number of phases
)

// A PhaseTracker has the bit 1<<Phase set for each phase that an operation has reported. Its zero value belongs to
// an operation that has just begun.
type PhaseTracker uint16

// Reached reports phase p to progress unless it was reported before. Once the file is open, earlier phases are not
// reported any more: they belong to later requests of the same operation.
func (t *PhaseTracker) Reached(progress Progress, p Phase) {
	const opened = 1<<Opened | 1<<FirstByte
	late := p < Opened && *t&opened != 0
	if !late && *t&(1<<p) == 0 {
		*t |= 1 << p
		progress.Reached(p)
	}
}
