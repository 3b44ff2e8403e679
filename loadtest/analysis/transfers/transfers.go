// Package transfers summarizes records of transfers: their cases, their files, and the sites at
// both ends.
package transfers

import (
	"strings"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
)

// mostFiles and mostReasons are the maximum numbers of files that findings list: files that ended,
// and files that have not arrived.
const (
	mostFiles   = 1000
	mostReasons = 200
)

// longEnough is the minimum part of a second in which a case must be active for that second to
// count in the load of an agent.
const longEnough = 0.25

// TransferFigures summarizes a record of transfers in addition to the curve.
type TransferFigures struct {
	Cases   []TransferCase `json:"cases"`             // one per step
	Files   []TransferFile `json:"files"`             // the first thousand that ended
	Left    int            `json:"files_left_out"`    // out of that list
	Missing []TransferFile `json:"files_not_arrived"` // the first two hundred
}

// A TransferCase summarizes one step of a record of transfers.
type TransferCase struct {
	Step       int           `json:"step"`
	Case       string        `json:"case"` // in words
	Files      int           `json:"files"`
	Arrived    int           `json:"arrived"`
	There      int           `json:"had_been_there"` // of these: they were only checked
	Smallest   int64         `json:"smallest_bytes"`
	Largest    int64         `json:"largest_bytes"`
	Bytes      int64         `json:"arrived_bytes"`
	Attempts   int           `json:"attempts"`
	Failures   int           `json:"failed_attempts"`
	AtOnce     int           `json:"at_once"` // maximum number of simultaneous copies
	Begin      time.Time     `json:"begin"`   // from the first submission
	End        time.Time     `json:"end"`     // to the last end
	Seconds    float64       `json:"duration_seconds"`
	Throughput float64       `json:"throughput_bytes_per_second"`   // of the transferred data
	SumOfFiles float64       `json:"sum_of_files_bytes_per_second"` // of each file's own throughput
	Spread     float64       `json:"spread_seconds"`                // from the first file's arrival to the last one's
	Ends       []TransferEnd `json:"ends"`

	brought int64 // the part of Bytes that was transferred
}

// A TransferEnd is one site in a case. Shares of CPU refer to one core, so they may exceed 1; nil:
// its host did not report.
type TransferEnd struct {
	Site     string   `json:"site"`
	Role     string   `json:"role"`           // "source", "destination" or "both"
	Moved    int64    `json:"moved_bytes"`    // sent and received
	Endpoint *int64   `json:"endpoint_bytes"` // of these through its endpoint, by its count
	CPUMax   *float64 `json:"cpu_max"`        // of its agent, busiest second
	CPUMean  *float64 `json:"cpu_mean"`       // over the case
	CPU      *float64 `json:"cpu_seconds"`    // of its agent
	Memory   *float64 `json:"memory_share"`   // of its agent, of the machine's
	Resident *int64   `json:"resident_bytes"`
}

// A TransferFile is the outcome of a file.
type TransferFile struct {
	Step       int       `json:"step"`
	File       string    `json:"file"`
	Size       int64     `json:"size_bytes"`
	Source     string    `json:"source"`
	Dest       string    `json:"destination"`
	Mode       string    `json:"mode,omitempty"`
	Tries      int       `json:"tries"`
	Done       bool      `json:"done"`
	Begin      time.Time `json:"begin,omitzero"` // of the deciding attempt
	End        time.Time `json:"end"`
	Seconds    float64   `json:"duration_seconds"`
	Throughput float64   `json:"throughput_bytes_per_second"` // of that attempt
	CPU        float64   `json:"mover_cpu_seconds,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// Text describes the numbers of files that arrived and that did not arrive.
func (t *TransferFigures) Text() string { return strings.Join(fact.Texts(t.Facts()), " ") }

// Facts returns the numbers of files that arrived, existed before and are missing.
func (t *TransferFigures) Facts() (found []fact.Fact) {
	var all TransferCase
	for c := range basics.Each(t.Cases) {
		all.Files, all.Arrived, all.There, all.Bytes = all.Files+c.Files, all.Arrived+c.Arrived, all.There+c.There, all.Bytes+c.Bytes
		all.Attempts, all.Failures = all.Attempts+c.Attempts, all.Failures+c.Failures
	}
	if all.Failures > 0 {
		found = append(found, fact.New("transfers.arrived_failures", "arrived", all.Arrived, "files", all.Files, "bytes", all.Bytes,
			"attempts", all.Attempts, "failed", all.Failures, "cases", len(t.Cases)))
	} else {
		found = append(found, fact.New("transfers.arrived", "arrived", all.Arrived, "files", all.Files, "bytes", all.Bytes,
			"attempts", all.Attempts, "cases", len(t.Cases)))
	}
	if all.There > 0 {
		found = append(found, fact.New("transfers.existed", "files", all.There))
	}
	if n := all.Files - all.Arrived; n > 0 {
		found = append(found, fact.New("transfers.missing", "files", n))
	}
	return found
}
