package results

import (
	"time"

	"weir/storage"
)

// A Transfer is one attempt to transfer a file from one site to another, or the outcome of a file
// for which no attempt was possible. It is written at its end.
type Transfer struct {
	Step     int           `json:"step"`              // that requested it
	Case     string        `json:"case"`              // description of the step
	Request  int64         `json:"request,omitempty"` // id of its request
	File     string        `json:"file"`
	Size     int64         `json:"size_bytes"`
	Source   string        `json:"source,omitempty"` // site; "": no site had it
	Dest     string        `json:"destination"`
	Mode     string        `json:"mode,omitempty"` // pull: the destination moved the bytes; push: the source; third: neither agent
	Begin    time.Time     `json:"begin,omitzero"` // zero: no attempt was made
	End      time.Time     `json:"end"`
	Moved    int64         `json:"moved_bytes"` // over the network
	Resumed  int64         `json:"resumed_bytes,omitempty"`
	Done     bool          `json:"done"`                // the file is at its destination
	Verified bool          `json:"verified,omitempty"`  // size and checksum were read back from there
	Last     bool          `json:"last,omitempty"`      // no further attempt for the file
	Class    storage.Class `json:"class,omitzero"`      // of failure
	Reason   string        `json:"reason,omitempty"`    // of failure, as a sentence
	Site     string        `json:"failed_at,omitempty"` // site to which the failure belongs; "": unknown
	Expired  bool          `json:"expired,omitempty"`   // credentials had ended
	Asked    time.Time     `json:"requested,omitzero"`  // of data challenges: the copy was requested; Begin is the first byte, as far as it is known
	LastByte time.Time     `json:"last_byte,omitzero"`  // of data challenges: all bytes had been moved, as far as it is known; verification follows
	Label    bool          `json:"labeled,omitempty"`   // its flows had a label (SciTags)
	CPU      float64       `json:"mover_cpu_seconds,omitempty"`
}

// Wrong reports whether all bytes of a failed copy were reported as moved: the destination does not
// have the file, or not as it was sent.
func (t *Transfer) Wrong() bool { return t.Class.Failure() && t.Moved >= t.Size }
