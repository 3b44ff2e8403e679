package cluster

import (
	"encoding/json"
	"time"
)

// Questions of workers to a Server, and its answers. All are sent by POST but for
// begin, which is the same for all and may be large.
const (
	clockPath    = "/clock"
	helloPath    = "/hello"
	beginPath    = "/begin"
	ordersPath   = "/orders"
	reportsPath  = "/reports"
	manifestPath = "/manifest"
)

// The longest questions, in bytes.
const (
	longestHello   = 16 << 10
	longestReports = 4 << 20
)

// clockNow answers what time it is.
type clockNow struct {
	Time time.Time `json:"time"`
}

// nothing asks or answers nothing.
type nothing struct{}

// hello says who comes in, or comes back to a controller that does not know it.
type hello struct {
	Session string        `json:"session"` // chosen at random
	Host    string        `json:"host"`
	Boot    string        `json:"boot"` // of the machine's kernel: which machine it is
	Pid     int           `json:"pid"`
	Space   string        `json:"pid_space"` // in which Pid means something
	Job     string        `json:"job"`
	Version string        `json:"version"`
	Cores   int           `json:"cores"`
	Files   uint64        `json:"files"` // that it may have open
	Offset  time.Duration `json:"offset"`
	Doubt   time.Duration `json:"doubt"`
	Acked   int64         `json:"acked"`           // its reports up to this one are done with
	Step    int           `json:"step,omitempty"`  // number of the step that it holds, or has held last
	Ready   bool          `json:"ready,omitempty"` // it asks for the next one
	Gone    bool          `json:"gone,omitempty"`  // its clients have left it
	Clients int           `json:"clients,omitempty"`
	Has     []span        `json:"has,omitempty"` // numbers of its clients
	Latest  time.Time     `json:"latest,omitzero"`
}

// welcome answers hello.
type welcome struct {
	Over   bool   `json:"over,omitempty"` // the run is
	Name   string `json:"name,omitempty"`
	Number int    `json:"number,omitempty"`
}

// listening asks for orders after one that was got; it is answered when there
// are some, or after a while.
type listening struct {
	Session string `json:"session"`
	After   int64  `json:"after"`
}

// a numbered order.
type numbered struct {
	No    int64 `json:"no"`
	Order order `json:"order"`
}

// told brings reports.
type told struct {
	Session string            `json:"session"`
	Reports []json.RawMessage `json:"reports"`
}

// taken answers told and listening.
type taken struct {
	Over   bool       `json:"over,omitempty"`
	Acked  int64      `json:"acked"` // reports up to this one are done with
	Orders []numbered `json:"orders,omitempty"`
}

// making asks to write down what is about to be made, or was removed.
type making struct {
	Session string  `json:"session"`
	Entries []entry `json:"entries"`
}

// An entry is a line of the manifest.
type entry struct {
	Path    []byte `json:"path"` // of any bytes
	Size    int64  `json:"size,omitempty"`
	Seed    uint64 `json:"seed,omitempty"`
	Removed bool   `json:"removed,omitempty"`
}
