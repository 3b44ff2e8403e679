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

// About says which program made a run, when, how it was called and on what
// machine. It is written before the first operation.
type About struct {
	Format  int       `json:"format"`            // of the run directory: FormatVersion; filled in by Create
	Weir    string    `json:"weir"`              // version of the program
	Go      string    `json:"go"`                // version of the Go runtime; filled in by Create
	Run     string    `json:"run"`               // unique name of this run; filled in by Create if empty
	Start   time.Time `json:"start"`             // wall clock; filled in by Create if zero
	Command []string  `json:"command,omitempty"` // command line, passwords in URLs blotted out by Create
	Clock   Clock     `json:"clock,omitzero"`
	// payload may have been counted without being copied to memory; discarded_bytes of the intervals says how much was
	Discard     bool             `json:"payload_discarded"`
	Scratch     *measure.Scratch `json:"scratch,omitempty"` // of jobs that copy files to a disk of this machine
	Links       *Links           `json:"links,omitempty"`   // nil: the network as it was
	Environment json.RawMessage  `json:"environment,omitempty"`
}

// Links describes where emulated links were made.
type Links struct {
	Isolated bool     `json:"isolated,omitempty"` // in a network of their own
	Why      string   `json:"why,omitempty"`      // reason for it
	Blind    []string `json:"blind,omitempty"`    // differences from real links, a sentence each
}

// Clock holds what is known about the clock that the times were read from.
type Clock struct {
	Source string  `json:"source,omitempty"`       // the kernel's clock source
	Read   float64 `json:"read_seconds,omitempty"` // what one look at it costs
	Step   float64 `json:"step_seconds,omitempty"` // smallest difference seen between two looks
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

// complete fills in what a caller may leave open.
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

// runName is unique for practical purposes: the second, and a hash of what
// tells two runs of the same second apart.
func runName(start time.Time, seed uint64) string {
	h := fnv.New32a()
	host, _ := os.Hostname() // only one ingredient of several
	_, _ = fmt.Fprint(h, host, os.Getpid(), start.UnixNano(), seed)
	return fmt.Sprintf("%s-%06x", start.UTC().Format("20060102-150405"), h.Sum32()&0xffffff)
}
