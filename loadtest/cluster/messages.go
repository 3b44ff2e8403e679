// Package cluster makes one run of many processes: a controller that holds the plan, and workers that each run an
// engine on their share of it.
//
// A worker asks for each step and gets its share when all workers have asked; what it measures goes back as
// intervals, which the controller adds up second by second and writes when all workers have reported theirs. The two communicate
// in JSON: over pairs of streams, to processes of this machine (Local), or over HTTPS, to workers that
// register from wherever a batch system has started them (Server, Join). Only the transport differs.
//
// Over a network every report has a number. It is accepted once, and acknowledged when its content has been written;
// until then the worker keeps it. So nothing is counted twice and nothing is lost, also if the controller is
// killed.
package cluster

import (
	"encoding/json"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
)

// An order is a message of the controller to a worker. But for Numbers exactly one field is set.
type order struct {
	Begin   *begin         `json:"begin,omitempty"`   // first
	Step    *scenario.Step `json:"step,omitempty"`    // the worker's share of the next step, to begin then
	Numbers []span         `json:"numbers,omitempty"` // with Step: of more clients than the worker has had
	Over    int            `json:"over,omitempty"`    // number of the step that all clients of all workers have left
	End     bool           `json:"end,omitempty"`     // no more steps
	Leave   bool           `json:"leave,omitempty"`   // no new operations, from now on
	Watch   *watchOrder    `json:"watch,omitempty"`   // watch your machine
	Way     *way           `json:"way,omitempty"`     // the answer to a report's Ask
	Quota   int64          `json:"quota,omitempty"`   // the worker's part of what copies of files may take of its machine
}

// A span is some numbers of clients, one after the other. Numbers are never given twice in a run: names of files and
// random choices depend on them.
type span struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// A watchOrder has a worker watch its machine.
type watchOrder struct {
	Pids []int `json:"pids"` // of the other workers there
}

// A way is where a worker reaches a server.
type way struct {
	Server string `json:"server"`       // host:port, as the worker asked for it
	At     string `json:"at,omitempty"` // address:port
	Error  string `json:"error,omitempty"`
}

// begin has all that a worker needs. Secrets are not in it: the worker reads the files and variables that the
// plan names.
type begin struct {
	Plan     *scenario.Plan  `json:"plan"`
	Files    []workload.File `json:"files"`
	Folder   string          `json:"folder"`
	Homes    int             `json:"homes"`              // numbers of clients from which on each makes its own folder
	Scratch  string          `json:"scratch,omitempty"`  // folder for copies of files; empty: the worker makes its own
	Quota    int64           `json:"quota,omitempty"`    // with Scratch: what the worker's copies may take; 0: no bound
	Manifest string          `json:"manifest,omitempty"` // run directory whose manifest the worker writes
	Making   bool            `json:"making,omitempty"`   // the worker has the controller write the manifest
	Ask      bool            `json:"ask,omitempty"`      // the worker asks where it reaches servers
}

// A report is a message of a worker to the controller. But for No exactly one field is set.
type report struct {
	No       int64             `json:"no,omitempty"`    // over a network: 1, 2, 3 ...
	Ready    bool              `json:"ready,omitempty"` // asks for the next step
	After    int               `json:"after,omitempty"` // with Ready: number of the step that it has held, 0 before the first
	Gone     int               `json:"gone,omitempty"`  // number of the step that all clients have left, their tasks done
	Interval *measure.Interval `json:"interval,omitempty"`
	Event    *measure.Event    `json:"event,omitempty"`
	Sample   *monitor.Sample   `json:"sample,omitempty"` // of the worker's machine
	Scratch  *scratchReport    `json:"scratch,omitempty"`
	Ask      string            `json:"ask,omitempty"`  // host:port of a server: where is it reached?
	Done     bool              `json:"done,omitempty"` // last
	Error    string            `json:"error,omitempty"`
}

// A scratchReport is where a worker's jobs put their copies of files.
type scratchReport struct {
	measure.Scratch
	Number string `json:"number,omitempty"` // of the file system: workers of one machine with the same one share its space
}

// Paths of a Server. All requests are sent by POST but for begin, which is the same for all
// and may be large.
const (
	clockPath    = "/clock"
	registerPath = "/register"
	beginPath    = "/begin"
	ordersPath   = "/orders"
	reportsPath  = "/reports"
	manifestPath = "/manifest"
)

// The longest requests, in bytes.
const (
	longestRegistration = 16 << 10
	longestReports      = 4 << 20
)

// clockResponse has the controller's time.
type clockResponse struct {
	Time time.Time `json:"time"`
}

// empty is a request or response without content.
type empty struct{}

// An identity identifies the process of a worker.
type identity struct {
	Session string        `json:"session,omitempty"` // chosen at random
	Host    string        `json:"host,omitempty"`
	Boot    string        `json:"boot,omitempty"` // of the machine's kernel: which machine it is
	Pid     int           `json:"pid,omitempty"`
	Space   string        `json:"pid_space,omitempty"` // in which Pid means something
	Job     string        `json:"job,omitempty"`
	Offset  time.Duration `json:"offset,omitempty"` // how far its machine's clock is behind the controller's
	Doubt   time.Duration `json:"doubt,omitempty"`  // about Offset, to both sides
}

// A registration announces a worker, also to a restarted controller that does not know it.
type registration struct {
	identity
	Version string    `json:"version"`
	Cores   int       `json:"cores"`
	Files   uint64    `json:"files"`           // that it may have open
	Acked   int64     `json:"acked"`           // its reports up to this one are done with
	Step    int       `json:"step,omitempty"`  // number of the step that it holds, or has held last
	Ready   bool      `json:"ready,omitempty"` // it asks for the next one
	Gone    bool      `json:"gone,omitempty"`  // its clients have left it
	Clients int       `json:"clients,omitempty"`
	Has     []span    `json:"has,omitempty"` // numbers of its clients
	Latest  time.Time `json:"latest,omitzero"`
	// where its jobs put copies of files; nil: nowhere, or it has not said so before
	Scratch *scratchReport `json:"scratch,omitempty"`
}

// registrationResponse answers a registration.
type registrationResponse struct {
	Over   bool   `json:"over,omitempty"` // the run is
	Name   string `json:"name,omitempty"`
	Number int    `json:"number,omitempty"`
}

// ordersRequest asks for orders after one that was got; it is answered when there are some, or after a while.
type ordersRequest struct {
	Session string `json:"session"`
	After   int64  `json:"after"`
}

// a numbered order.
type numbered struct {
	No    int64 `json:"no"`
	Order order `json:"order"`
}

// reportsRequest sends reports.
type reportsRequest struct {
	Session string            `json:"session"`
	Reports []json.RawMessage `json:"reports"`
}

// ordersResponse answers requests for orders and with reports.
type ordersResponse struct {
	Over   bool       `json:"over,omitempty"`
	Acked  int64      `json:"acked"` // reports up to this one are done with
	Orders []numbered `json:"orders,omitempty"`
}

// manifestRequest asks to record what is about to be created, or was removed.
type manifestRequest struct {
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
