package transfer

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"path"
	"time"
)

// The agents' requests to the coordinator, below its URL. All are POST with JSON and the site's
// token. Status 410 means that the agent is not registered with the coordinator; it then registers.
const (
	RegisterPath   = "/api/v1/agent/register"   // Register; the response is a Registration
	DeregisterPath = "/api/v1/agent/deregister" // Deregister; the response is {}
	WorkPath       = "/api/v1/agent/work"       // PollRequest; the response is a Work: a long poll
	ReportPath     = "/api/v1/agent/report"     // Report; the response is an Ack
	ClockPath      = "/api/v1/agent/clock"      // {}; the response is a Clock
)

// Hidden is the folder of temporary files below the root of a site.
const Hidden = ".weir"

// PartName returns the name of a file while an agent writes it, below the root of its destination.
func PartName(item, epoch int64) string { return fmt.Sprintf("%s/%d.%d.part", Hidden, item, epoch) }

// TempPath returns the name of a file while a site without an agent writes it. It is in the folder
// of the file: on the same file system, and in a folder that the token for the file permits.
func (l *Lease) TempPath() string {
	return path.Join(path.Dir(l.Dest.Path), fmt.Sprintf(".weir-%d.%d.part", l.Item, l.Epoch))
}

// ParsePartName parses a name that PartName returns, and accepts no other name.
func ParsePartName(name string) (h LeaseID, ok bool) {
	_, err := fmt.Sscanf(name, Hidden+"/%d.%d.part", &h.Item, &h.Epoch)
	return h, err == nil && h.Item > 0 && h.Epoch > 0 && name == PartName(h.Item, h.Epoch)
}

// A LeaseID names an attempt.
type LeaseID struct {
	Item  int64 `json:"item"`
	Epoch int64 `json:"epoch"`
}

// A Lease is one attempt at one file. Only the holder of the latest epoch of an item changes
// anything.
type Lease struct {
	Item    int64     `json:"item"`
	Epoch   int64     `json:"epoch"` // grows with each attempt at the item
	Request int64     `json:"request"`
	Mode    Mode      `json:"mode"`
	Until   time.Time `json:"until"` // by the coordinator's clock; reports renew it

	Name   string `json:"name"` // of the file: /store/run1/f1.root
	Size   int64  `json:"size_bytes"`
	Adler  string `json:"adler32,omitempty"` // 8 hex digits, for jobs also ALGORITHM:DIGITS; "": not known, it is read from the source
	Source End    `json:"source"`
	Dest   End    `json:"dest"`

	Streams   int   `json:"streams,omitempty"`     // connections for this file; 0: the mover decides
	Chunk     int64 `json:"chunk_bytes,omitempty"` // of chunk digests; 0 is 64 MiB
	AtOnce    int   `json:"at_once,omitempty"`     // concurrent transfers between these two ends; 0: no limit
	Unchecked bool  `json:"unchecked,omitempty"`   // accept a missing checksum and report it

	Job     string        `json:"job,omitempty"`        // of a URL pair, which only the coordinator copies: then Size may be -1, not known
	Replace bool          `json:"replace,omitempty"`    // another file at the destination is replaced
	Timeout time.Duration `json:"timeout_ns,omitempty"` // of the attempt; 0: no limit
	Strict  bool          `json:"strict,omitempty"`     // the destination is not checked before, and no checksums are requested
}

// ID returns the name of the attempt.
func (l *Lease) ID() LeaseID { return LeaseID{l.Item, l.Epoch} }

// An End is the source or destination of a lease.
type End struct {
	Site  string `json:"site"`
	Path  string `json:"path"`            // below the site's root, with slashes, no leading one
	URL   string `json:"url,omitempty"`   // of the file; "" if the site has no endpoint
	Token string `json:"token,omitempty"` // short-lived bearer token for this path; a secret
	Pin   string `json:"pin,omitempty"`   // SHA-256 of the endpoint's certificate, if it is self-signed

	Cert *tls.Certificate `json:"-"` // client certificate of the coordinator's own requests for a job; nil: no certificate

	Temp    string   `json:"temp,omitempty"`    // path of the temporary file below the root; "": PartName
	Servers []string `json:"servers,omitempty"` // redirect targets that may receive Token: "host", "host:port", "*.domain"
}

// A Register announces an agent. One with another Session is another process: attempts of the
// former process that are not in Holding are lost.
type Register struct {
	Site    string    `json:"site"`
	Session string    `json:"session"` // random, of this process
	Version string    `json:"version"`
	Host    string    `json:"host"`
	URL     string    `json:"url,omitempty"` // of its endpoint; "": it only opens connections
	Pin     string    `json:"pin,omitempty"` // SHA-256 of the endpoint's certificate, if it is self-signed
	Slots   int       `json:"slots"`         // concurrent transfers
	Free    int64     `json:"free_bytes"`    // of its root; -1: not known
	Holding []LeaseID `json:"holding,omitempty"`
	Root    string    `json:"root,omitempty"`     // random id kept in the root; "": the root is read-only
	NewRoot bool      `json:"new_root,omitempty"` // the root may differ from the site's former one
}

// A Registration is the response to a Register.
type Registration struct {
	Now      time.Time       `json:"now"`
	Issuer   string          `json:"issuer"`         // of the tokens that the endpoint accepts
	Audience []string        `json:"audience"`       // tokens for this endpoint have one of these
	Keys     json.RawMessage `json:"keys,omitempty"` // the issuer's public keys, a JWK set (RFC 7517)
	Report   time.Duration   `json:"report_ns"`      // the longest time between reports; 0 is 1 s
}

// A Deregister announces that an agent stops. Leases that are not in Holding are given out again.
type Deregister struct {
	Site    string    `json:"site"`
	Session string    `json:"session"`
	Holding []LeaseID `json:"holding,omitempty"` // attempts whose outcomes were not acknowledged
}

// A Clock is the coordinator's time.
type Clock struct {
	Now time.Time `json:"now"`
}

// A PollRequest requests work. A lease of the site that is not in Holding was not received.
type PollRequest struct {
	Site    string    `json:"site"`
	Session string    `json:"session"`
	Slots   int       `json:"slots"`      // leases that it can begin now
	Free    int64     `json:"free_bytes"` // -1: not known
	Holding []LeaseID `json:"holding,omitempty"`
	Scans   []int64   `json:"scans,omitempty"` // that are running
}

// Work is the response to a PollRequest. For small files it has more leases than slots: the agent
// keeps them in order, and lists them in Holding and, without a Stage, in Progress, which renews
// them.
type Work struct {
	Leases []Lease   `json:"leases,omitempty"`
	Cancel []LeaseID `json:"cancel,omitempty"` // to abort, discarding the partial file
	Lost   []LeaseID `json:"lost,omitempty"`   // to abort, keeping the partial file for the next attempt
	Scans  []Scan    `json:"scans,omitempty"`
	Drop   []int64   `json:"drop,omitempty"` // scans to abort
}

// A Scan has an agent list a folder with checksums.
type Scan struct {
	ID   int64  `json:"id"`
	Path string `json:"path"` // below the site's root, with slashes, no leading one; "" is the root
}

// A Report carries the news of an agent. The agent repeats it until it is acknowledged; outcomes
// are identified by item and epoch, scanned files by path, samples by time.
type Report struct {
	Site     string       `json:"site"`
	Session  string       `json:"session"`
	Number   int64        `json:"number"` // of the report in its session
	Free     int64        `json:"free_bytes"`
	Progress []Progress   `json:"progress,omitempty"` // of each running or waiting attempt; it renews the lease
	Outcomes []Outcome    `json:"outcomes,omitempty"`
	Found    []ScanResult `json:"found,omitempty"`
	Samples  []Sample     `json:"samples,omitempty"`
	Parts    []LeaseID    `json:"parts,omitempty"` // temporary files that no attempt at the site uses, at most MaxParts
}

// MaxParts limits Report.Parts.
const MaxParts = 1000

// An Ack acknowledges a report.
type Ack struct {
	Now    time.Time `json:"now"`
	Until  time.Time `json:"until"`            // the leases were renewed until then
	Cancel []LeaseID `json:"cancel,omitempty"` // as in Work
	Lost   []LeaseID `json:"lost,omitempty"`
	Drop   []int64   `json:"drop,omitempty"` // scans to abort
	Over   []LeaseID `json:"over,omitempty"` // temporary files of Report.Parts to remove
}

// A Progress is the state of a running attempt. It renews the lease.
type Progress struct {
	Item  int64 `json:"item"`
	Epoch int64 `json:"epoch"`
	Stage Stage `json:"stage"`
	Moved int64 `json:"moved_bytes"` // by this attempt
}

// An Outcome is the end of an attempt. Fault "" is success: the file has its final name, and its
// size and checksum were read back.
type Outcome struct {
	Item     int64         `json:"item"`
	Epoch    int64         `json:"epoch"`
	Fault    ErrorClass    `json:"fault,omitempty"`
	Reason   string        `json:"reason,omitempty"`   // a sentence without secrets
	After    time.Duration `json:"after_ns,omitempty"` // with Throttled: time to the next try
	At       string        `json:"at,omitempty"`       // the site that failed, if known: the source or the destination
	Status   int           `json:"status,omitempty"`   // the HTTP status of At's refusal; 0: no status
	Size     int64         `json:"size_bytes"`
	Adler    string        `json:"adler32,omitempty"` // read back at the destination
	Verified bool          `json:"verified"`
	Streamed bool          `json:"-"`                       // set by the coordinator only: the bytes passed through it
	Existed  bool          `json:"existed,omitempty"`       // the verified file was there before: nothing was transferred
	Moved    int64         `json:"moved_bytes"`             // over the network by this attempt
	Resumed  int64         `json:"resumed_bytes,omitempty"` // kept from an earlier attempt
	Begin    time.Time     `json:"begin"`                   // by the coordinator's clock
	End      time.Time     `json:"end"`
	CPU      float64       `json:"cpu_seconds,omitempty"` // of the mover for this file, as far as known

	Unwritten bool `json:"unwritten,omitempty"` // the attempt created no temporary file at the destination
}

// ID returns the name of the attempt.
func (o *Outcome) ID() LeaseID { return LeaseID{o.Item, o.Epoch} }

// A ScanResult is a part of the result of a scan. The last part has Done; Problem is the reason why
// a file could not be read or the scan was aborted.
type ScanResult struct {
	Scan    int64         `json:"scan"`
	Files   []ScannedFile `json:"files,omitempty"`
	Done    bool          `json:"done,omitempty"`
	Problem string        `json:"problem,omitempty"`
}

// A ScannedFile is a file at a site.
type ScannedFile struct {
	Path  string `json:"path"` // below the scanned folder
	Size  int64  `json:"size_bytes"`
	Adler string `json:"adler32,omitempty"` // 8 hex digits
}

// CoordinatorHost is the site of samples of the coordinator's own host. No site has this name.
const CoordinatorHost = "_coordinator"

// A Sample is the resource usage of an agent's host over about a second. Values that cannot be
// measured are 0.
type Sample struct {
	Time        time.Time `json:"time"` // end of the interval, by the coordinator's clock
	Seconds     float64   `json:"duration_seconds"`
	Cores       int       `json:"cores"`
	CPU         float64   `json:"cpu"`    // utilization of all cores, 0 to 1
	Memory      float64   `json:"memory"` // utilization, 0 to 1
	Total       int64     `json:"memory_bytes"`
	In          float64   `json:"received_bytes_per_second"` // all interfaces
	Out         float64   `json:"sent_bytes_per_second"`
	Read        float64   `json:"read_bytes_per_second"` // all disks
	Write       float64   `json:"write_bytes_per_second"`
	OwnCPU      float64   `json:"own_cpu_seconds"` // of the agent, in the interval
	OwnMemory   int64     `json:"own_resident_bytes"`
	Running     int       `json:"running"`                           // transfers at the end of the interval
	MovedBytes  float64   `json:"moved_bytes_per_second"`            // by the agent's transfers
	EndpointIn  int64     `json:"endpoint_received_bytes,omitempty"` // payload through the endpoint, in the interval
	EndpointOut int64     `json:"endpoint_sent_bytes,omitempty"`
}

// UnmarshalJSON reads a sample. In samples of older versions, the keys of the endpoint began with
// door.
func (s *Sample) UnmarshalJSON(b []byte) error {
	type sample Sample
	*s = Sample{}
	older := struct {
		*sample
		In  int64 `json:"door_received_bytes"`
		Out int64 `json:"door_sent_bytes"`
	}{sample: (*sample)(s)}
	if err := json.Unmarshal(b, &older); err != nil {
		return err
	}
	s.EndpointIn, s.EndpointOut = cmp.Or(s.EndpointIn, older.In), cmp.Or(s.EndpointOut, older.Out)
	return nil
}
