package results

import (
	"time"

	"weir/storage"
)

// A Transfer is one attempt to bring a file from one site to another, or what
// became of a file for which none could be made. It is written when it ended.
type Transfer struct {
	Step     int           `json:"step"`              // in which it was asked for
	Case     string        `json:"case"`              // what the step is, in words
	Request  int64         `json:"request,omitempty"` // whose it is
	File     string        `json:"file"`
	Size     int64         `json:"size_bytes"`
	Source   string        `json:"source,omitempty"` // site; "": no site had it
	Dest     string        `json:"destination"`
	Mode     string        `json:"mode,omitempty"` // pull: the destination moved the bytes; push: the source did; third: neither's agent
	Begin    time.Time     `json:"begin,omitzero"` // zero: nothing was tried
	End      time.Time     `json:"end"`
	Moved    int64         `json:"moved_bytes"` // over the network
	Resumed  int64         `json:"resumed_bytes,omitempty"`
	Done     bool          `json:"done"`               // the file is at its destination
	Verified bool          `json:"verified,omitempty"` // size and checksum were read back from there
	Last     bool          `json:"last,omitempty"`     // nothing more was tried for the file
	Class    storage.Class `json:"class,omitzero"`     // of failure
	Reason   string        `json:"reason,omitempty"`   // of failure, a sentence
	CPU      float64       `json:"mover_cpu_seconds,omitempty"`
}
