// Package cluster distributes one run over many processes: a controller that holds the plan, and
// workers that each run an engine on their share of it.
//
// A worker requests each step and receives its share when all workers have requested it. It returns
// its measurements as intervals, which the controller adds up second by second and writes when all
// workers have reported theirs. Controller and workers communicate in JSON: over pairs of streams
// with processes of this machine (Local), or over HTTPS with workers that register from the
// machines on which a batch system has started them (Server, Join). Only the transport differs.
//
// Over a network every report has a number. It is accepted once, and acknowledged when its content
// has been written; until then the worker keeps it. So no report is counted twice and no report is
// lost, even if the controller is killed.
package cluster

import (
	"encoding/json"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
)

// An order is a message of the controller to a worker. Exactly one field is set, except for
// Numbers.
type order struct {
	Begin   *begin         `json:"begin,omitempty"`   // first
	Step    *scenario.Step `json:"step,omitempty"`    // the worker's share of the next step, to begin then
	Numbers []span         `json:"numbers,omitempty"` // with Step: numbers of additional clients
	Over    int            `json:"over,omitempty"`    // number of the step that all clients of all workers have left
	End     bool           `json:"end,omitempty"`     // no more steps
	Leave   bool           `json:"leave,omitempty"`   // no new operations, from now on
	Watch   *watchOrder    `json:"watch,omitempty"`   // monitor the machine
	Way     *way           `json:"way,omitempty"`     // response to a report's Ask
	Quota   int64          `json:"quota,omitempty"`   // bytes for copies of files on the machine
}

// A span is a range of consecutive numbers of clients. Numbers are never given twice in a run:
// names of files and random choices depend on them.
type span struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// A watchOrder makes a worker monitor its machine.
type watchOrder struct {
	Pids []int `json:"pids"` // of the other workers on the machine
}

// A way is the address at which a worker reaches a server.
type way struct {
	Server string `json:"server"`       // host:port, as in the worker's request
	At     string `json:"at,omitempty"` // address:port
	Error  string `json:"error,omitempty"`
}

// begin contains everything that a worker needs except secrets: the worker reads the files and
// variables that the plan names.
type begin struct {
	Plan     *scenario.Plan  `json:"plan"`
	Files    []workload.File `json:"files"`
	Folder   string          `json:"folder"`
	Homes    int             `json:"homes"`              // numbers of clients from which on each makes its own folder
	Scratch  string          `json:"scratch,omitempty"`  // folder for copies of files; empty: the worker makes its own
	Quota    int64           `json:"quota,omitempty"`    // with Scratch: byte limit; 0: no limit
	Manifest string          `json:"manifest,omitempty"` // run directory whose manifest the worker writes
	Making   bool            `json:"making,omitempty"`   // the worker has the controller write the manifest
	Ask      bool            `json:"ask,omitempty"`      // the worker requests addresses of servers
}

// A report is a message of a worker to the controller. Exactly one field is set, except for No,
// After and Error.
type report struct {
	No       int64             `json:"no,omitempty"`    // over a network: 1, 2, 3 ...
	Ready    bool              `json:"ready,omitempty"` // requests the next step
	After    int               `json:"after,omitempty"` // with Ready: number of the step that it has held, 0 before the first
	Gone     int               `json:"gone,omitempty"`  // number of the step that all clients have left, their tasks done
	Interval *measure.Interval `json:"interval,omitempty"`
	Event    *measure.Event    `json:"event,omitempty"`
	Sample   *monitor.Sample   `json:"sample,omitempty"` // of the worker's machine
	Scratch  *scratchReport    `json:"scratch,omitempty"`
	Ask      string            `json:"ask,omitempty"`  // requests a server's address; host:port
	Done     bool              `json:"done,omitempty"` // last
	Error    string            `json:"error,omitempty"`
}

// A scratchReport describes the folder in which a worker's jobs store copies of files.
type scratchReport struct {
	measure.Scratch
	Number string `json:"number,omitempty"` // of the file system, whose space workers may share
}

// Paths of a Server. All requests are sent by POST except begin, whose response is the same for all
// workers and may be large.
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
	Boot    string        `json:"boot,omitempty"` // of the kernel: identifies the machine
	Pid     int           `json:"pid,omitempty"`
	Space   string        `json:"pid_space,omitempty"` // namespace of Pid
	Job     string        `json:"job,omitempty"`
	Offset  time.Duration `json:"offset,omitempty"` // of its clock: positive if behind ours
	Doubt   time.Duration `json:"doubt,omitempty"`  // uncertainty of Offset, to both sides
}

// A registration announces a worker, also to a restarted controller that has no session of it.
type registration struct {
	identity
	Version string    `json:"version"`
	Cores   int       `json:"cores"`
	Files   uint64    `json:"files"`           // number of files that it may open
	Acked   int64     `json:"acked"`           // its reports up to this number are finished
	Step    int       `json:"step,omitempty"`  // number of the step that it holds, or has held last
	Ready   bool      `json:"ready,omitempty"` // it requests the next step
	Gone    bool      `json:"gone,omitempty"`  // its clients have left the step
	Clients int       `json:"clients,omitempty"`
	Has     []span    `json:"has,omitempty"` // numbers of its clients
	Latest  time.Time `json:"latest,omitzero"`
	// Scratch is the folder of its jobs for copies of files; nil: there is no folder, or it was not
	// reported yet.
	Scratch *scratchReport `json:"scratch,omitempty"`
}

// registrationResponse is the response to a registration.
type registrationResponse struct {
	Over   bool   `json:"over,omitempty"` // the run is over
	Name   string `json:"name,omitempty"`
	Number int    `json:"number,omitempty"`
}

// ordersRequest requests the orders after the last received order. The response is sent when there
// are orders, or after a while.
type ordersRequest struct {
	Session string `json:"session"`
	After   int64  `json:"after"`
}

// numbered is an order with its number.
type numbered struct {
	No    int64 `json:"no"`
	Order order `json:"order"`
}

// reportsRequest sends reports.
type reportsRequest struct {
	Session string            `json:"session"`
	Reports []json.RawMessage `json:"reports"`
}

// ordersResponse is the response to requests for orders and to requests with reports.
type ordersResponse struct {
	Over   bool       `json:"over,omitempty"`
	Acked  int64      `json:"acked"` // reports up to this number are finished
	Orders []numbered `json:"orders,omitempty"`
}

// manifestRequest requests the record of paths that are about to be created, or were removed.
type manifestRequest struct {
	Session string  `json:"session"`
	Entries []entry `json:"entries"`
}

// An entry is a line of the manifest.
type entry struct {
	Path    []byte `json:"path"` // arbitrary bytes
	Size    int64  `json:"size,omitempty"`
	Seed    uint64 `json:"seed,omitempty"`
	Removed bool   `json:"removed,omitempty"`
}
