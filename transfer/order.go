package transfer

import "time"

// A Mode is who moves the bytes of a file.
type Mode string

// The modes.
const (
	Pull  Mode = "pull"  // the destination's agent reads from the source
	Push  Mode = "push"  // the source's agent writes to the destination
	Third Mode = "third" // the coordinator has one of two HTTP endpoints copy (HTTP-TPC)
	Check Mode = "check" // nobody: the destination should have it already, and looks
)

// Mover returns the site whose agent moves the bytes between two sites, "" if none
// does.
func (m Mode) Mover(source, dest string) string {
	switch m {
	case Pull, Check:
		return dest
	case Push:
		return source
	}
	return ""
}

// A Lease is one attempt at one file, as the coordinator gives it to whoever
// moves the bytes. Only the holder of the latest Epoch of an Item changes
// anything.
type Lease struct {
	Item    int64     `json:"item"`
	Epoch   int64     `json:"epoch"` // grows with each attempt of the item
	Request int64     `json:"request"`
	Mode    Mode      `json:"mode"`
	Until   time.Time `json:"until"` // by the coordinator's clock; holders renew by reports

	Name   string `json:"name"` // of the file: /store/run1/f1.root
	Size   int64  `json:"size_bytes"`
	Adler  string `json:"adler32,omitempty"` // 8 hex digits; "" is not known: then the source is asked
	Source End    `json:"source"`
	Dest   End    `json:"dest"`

	Streams   int   `json:"streams,omitempty"`     // connections for this file; 0 is the mover's choice
	Chunk     int64 `json:"chunk_bytes,omitempty"` // of chunk digests; 0 is 64 MiB
	AtOnce    int   `json:"at_once,omitempty"`     // copies between these two ends that the mover runs at once; 0: any number
	Unchecked bool  `json:"unchecked,omitempty"`   // a missing checksum is accepted, and said
}

// An End is a site as one copy sees it.
type End struct {
	Site  string `json:"site"`
	Path  string `json:"path"`            // below the site's root, slashes, no leading one
	URL   string `json:"url,omitempty"`   // of the file there; "" if the site has no door
	Token string `json:"token,omitempty"` // bearer, for this path, for a short time; a secret
	Pin   string `json:"pin,omitempty"`   // SHA-256 of the door's certificate, if it is self-made

	Temp    string   `json:"temp,omitempty"`    // path of the file under way, below the root; "": PartName
	Servers []string `json:"servers,omitempty"` // that Token may be shown to, too, if the URL's server redirects there: "host", "host:port", "*.domain"
}

// A Stage is what a mover is doing with a file.
type Stage string

// The stages.
const (
	Moving     Stage = "moving"
	Verifying  Stage = "verifying"
	Committing Stage = "committing"
)

// A Progress is where a running attempt stands. It renews the lease.
type Progress struct {
	Item  int64 `json:"item"`
	Epoch int64 `json:"epoch"`
	Stage Stage `json:"stage"`
	Moved int64 `json:"moved_bytes"` // of this attempt, without what an earlier one had left
}

// An Outcome is how an attempt ended. Fault "" is success: the file is at its
// final name, and what was read back from there has the size and checksum.
type Outcome struct {
	Item     int64         `json:"item"`
	Epoch    int64         `json:"epoch"`
	Fault    ErrorClass    `json:"fault,omitempty"`
	Reason   string        `json:"reason,omitempty"`   // a sentence for people; no secret
	After    time.Duration `json:"after_ns,omitempty"` // Throttled: when to come again
	At       string        `json:"at,omitempty"`       // the site that the fault is about, as far as the mover knows: the source or the destination
	Status   int           `json:"status,omitempty"`   // of HTTP, with which At has refused; 0: none
	Size     int64         `json:"size_bytes"`
	Adler    string        `json:"adler32,omitempty"` // read back at the destination
	Verified bool          `json:"verified"`
	Existed  bool          `json:"existed,omitempty"`       // it was there already, verified: nothing moved
	Moved    int64         `json:"moved_bytes"`             // over the network by this attempt
	Resumed  int64         `json:"resumed_bytes,omitempty"` // left by an earlier attempt and kept
	Begin    time.Time     `json:"begin"`                   // by the coordinator's clock
	End      time.Time     `json:"end"`
	CPU      float64       `json:"cpu_seconds,omitempty"` // of the mover, for this file, as far as known
}
