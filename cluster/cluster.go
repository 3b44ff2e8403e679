// Package cluster makes one run of many processes: a controller that holds the
// plan, and workers that each run an engine on their share of it.
//
// The two talk in JSON lines over any pair of streams. A worker asks for each
// step and gets it when all workers have asked; what it measures goes back
// as intervals, which the controller adds up second by second. Today the
// workers are processes of this machine (Local), for more clients than one
// process may have open files.
package cluster

import (
	"weir/measure"
	"weir/scenario"
	"weir/workload"
)

// An order is what the controller says to a worker. Exactly one field is set.
type order struct {
	Begin *begin         `json:"begin,omitempty"` // first
	Step  *scenario.Step `json:"step,omitempty"`  // the worker's share of the next step, to begin now
	Over  int            `json:"over,omitempty"`  // number of the step that all clients of all workers have left
	End   bool           `json:"end,omitempty"`   // no more steps
	Leave bool           `json:"leave,omitempty"` // no new operations, from now on
	Way   *way           `json:"way,omitempty"`   // the answer to a report's Ask
}

// A way is where a worker reaches a server.
type way struct {
	Server string `json:"server"`       // host:port, as the worker asked for it
	At     string `json:"at,omitempty"` // address:port
	Error  string `json:"error,omitempty"`
}

// begin is all that a worker needs to know. Secrets are not in it: the worker
// reads the files and variables that the plan names.
type begin struct {
	Plan     *scenario.Plan  `json:"plan"`
	Files    []workload.File `json:"files"`
	Folder   string          `json:"folder"`
	Scratch  string          `json:"scratch,omitempty"`
	Manifest string          `json:"manifest,omitempty"` // run directory whose manifest the worker writes
	Ask      bool            `json:"ask,omitempty"`      // the worker asks where it reaches servers
}

// A report is what a worker says to the controller. Exactly one field is set.
type report struct {
	Ready    bool              `json:"ready,omitempty"` // asks for the next step
	Gone     int               `json:"gone,omitempty"`  // number of the step that all clients have left, their tasks done
	Interval *measure.Interval `json:"interval,omitempty"`
	Event    *measure.Event    `json:"event,omitempty"`
	Ask      string            `json:"ask,omitempty"`  // host:port of a server: where is it reached?
	Done     bool              `json:"done,omitempty"` // last
	Error    string            `json:"error,omitempty"`
}
