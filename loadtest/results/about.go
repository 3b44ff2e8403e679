package results

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strings"
	"time"

	"weir/internal/redact"
	"weir/loadtest/measure"
)

// About describes the program, the time, the command line and the machine of a run. It is written
// before the first operation.
type About struct {
	Format  int       `json:"format"`            // of the run directory: FormatVersion; filled in by Create
	Weir    string    `json:"weir"`              // version of the program
	Go      string    `json:"go"`                // version of the Go runtime; filled in by Create
	Run     string    `json:"run"`               // unique name of this run; filled in by Create if empty
	Start   time.Time `json:"start"`             // wall clock; filled in by Create if zero
	Command []string  `json:"command,omitempty"` // command line; Create removes passwords in URLs
	Clock   Clock     `json:"clock,omitzero"`
	// payload may have been counted without being copied to memory; the intervals have its amount
	// in discarded_bytes
	Discard     bool             `json:"payload_discarded"`
	Scratch     *measure.Scratch `json:"scratch,omitempty"` // of jobs that copy files to a disk of this machine
	Links       *Links           `json:"links,omitempty"`   // nil: no emulated links
	Environment json.RawMessage  `json:"environment,omitempty"`
}

// Links describes the location of emulated links.
type Links struct {
	Isolated bool     `json:"isolated,omitempty"` // in a separate network
	Why      string   `json:"why,omitempty"`      // reason for the location
	Blind    []string `json:"blind,omitempty"`    // differences from real links, a sentence each
}

// Clock describes the clock from which the times were read.
type Clock struct {
	Source string  `json:"source,omitempty"`       // the kernel's clock source
	Read   float64 `json:"read_seconds,omitempty"` // cost of one reading
	Step   float64 `json:"step_seconds,omitempty"` // smallest difference between two readings
}

// ReadClock measures the clock of this machine; it takes less than a millisecond.
func ReadClock() Clock {
	const looks = 2000
	var c Clock
	if b, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"); err == nil {
		c.Source = strings.TrimSpace(string(b))
	}
	begin := time.Now()
	last, step := begin, time.Hour
	for range looks {
		now := time.Now()
		if d := now.Sub(last); d > 0 {
			step = min(step, d)
		}
		last = now
	}
	c.Read = last.Sub(begin).Seconds() / looks
	c.Step = step.Seconds()
	return c
}

// complete fills in the fields that a caller may leave empty.
func (a About) complete(seed uint64) About {
	a.Format = FormatVersion
	if a.Go == "" {
		a.Go = runtime.Version()
	}
	if a.Start.IsZero() {
		a.Start = time.Now()
	}
	if a.Run == "" {
		a.Run = runName(a.Start, seed)
	}
	a.Command = redact.Args(a.Command)
	return a
}

// runName returns a name that is unique in practice: the second, and a hash of values that
// distinguish two runs of the same second.
func runName(start time.Time, seed uint64) string {
	h := fnv.New32a()
	host, _ := os.Hostname() // only one ingredient of several
	_, _ = fmt.Fprint(h, host, os.Getpid(), start.UnixNano(), seed)
	return fmt.Sprintf("%s-%06x", start.UTC().Format("20060102-150405"), h.Sum32()&0xffffff)
}
