package scenario

import (
	"fmt"
	"time"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// A Plan is a scenario with nothing left to decide: all defaults are filled in, all steps are
// listed and the seed is fixed. Two equal plans do the same work. A plan contains no secret; it can
// be written, sent and read again.
type Plan struct {
	Version      int                    `json:"version"` // of the plan's format: PlanVersion
	Name         string                 `json:"name"`
	Target       string                 `json:"target"`                  // URL; of several endpoints the first
	Others       []string               `json:"other_targets,omitempty"` // URLs of the other endpoints, which are equal to Target
	Server       Server                 `json:"server,omitzero"`         // properties of the built-in server
	Balancer     monitor.BalancerConfig `json:"balancer,omitzero"`
	Driver       storage.DriverName     `json:"driver"` // name of the storage driver
	Command      []string               `json:"command,omitempty"`
	Auth         storage.Auth           `json:"auth,omitzero"`
	Origin       *Origin                `json:"origin,omitempty"` // of the files that clients of kind copy have copied to the target
	Seed         uint64                 `json:"seed"`
	Files        Files                  `json:"files,omitzero"`
	Work         workload.Work          `json:"workload"`
	Populations  []Population           `json:"populations,omitempty"` // groups of clients that work at the same time; Work is then the workload of the first group
	Population   string                 `json:"population,omitempty"`  // in the plan of a worker: the population to which the worker belongs
	Links        Links                  `json:"links,omitempty"`       // emulated, between clients and service; empty: the network is not changed
	On           On                     `json:"on,omitzero"`           // the machines of the clients
	Model        Model                  `json:"model"`
	Steps        []Step                 `json:"steps"`
	Find         *Find                  `json:"find,omitempty"`        // search for the best load; Steps is then empty
	GracefulStop unit.Duration          `json:"graceful_stop"`         // time limit of the last operations
	ErrorPause   unit.Duration          `json:"error_pause"`           // longest pause of a client whose tasks fail repeatedly; 0: no pause
	RetryAfter   string                 `json:"retry_after,omitempty"` // IgnoreRetryAfter; "": clients pause for Retry-After
	Stop         Stop                   `json:"stop,omitzero"`
	Hosts        []monitor.Host         `json:"hosts,omitempty"`
	Thresholds   []string               `json:"thresholds,omitempty"` // conditions on the result
	Boundaries   []string               `json:"boundaries,omitempty"` // conditions whose loads are sought; empty: DefaultBoundaries
	Events       []Event                `json:"events,omitempty"`     // by time
	First        int                    `json:"first_client"`         // number of this share's first client
	Challenge    *challenge.Challenge   `json:"challenge,omitempty"`  // data challenge; its copies are the only work
	BuiltIn      bool                   `json:"built_in,omitempty"`   // the target is weir's own server, started for the run
}

// A Model is the quantity that sets the load of a step: clients or arrivals.
type Model string

// Load models.
const (
	ClosedModel Model = "closed" // a number of clients, each of which waits for its operations
	OpenModel   Model = "open"   // a rate of arrivals, whether operations have ended or not
)

// The choices of load.retry_after: clients pause for the time that the service requests, or ignore
// the request.
const (
	obeyRetryAfter   = "obey"
	IgnoreRetryAfter = "ignore"
)

// PlanVersion is the version of the plan's format.
const PlanVersion = 2

// Files is the source of the paths: exactly one of List, Listing and Make is set; workloads without
// files leave all of them empty.
type Files struct {
	List    string   `json:"list,omitempty" doc:"File with one path per line, relative to the target, and optionally its size."`
	Listing bool     `json:"listing,omitempty" doc:"List the target. A target that is a file is the only one."`
	Include []string `json:"include,omitempty" doc:"Patterns of the names to use of list or listing, as in ['*.root']. Default: all."`
	Exclude []string `json:"exclude,omitempty" doc:"Patterns of the names to leave out."`
	Sample  int      `json:"sample,omitempty" doc:"Number of files to use of those that match, drawn at random by seed; 0: all."`
	Make    *Make    `json:"make,omitempty" doc:"Files that the run creates before it starts and removes after it."`
}

// Make describes the files that a run creates for itself.
type Make struct {
	Count int           `json:"count" doc:"Number of files."`
	Size  workload.Dist `json:"size" default:"1MiB" doc:"File size: fixed, uniform or by weights."`
	Keep  bool          `json:"keep,omitempty" doc:"Keep the files for the next run."`
}

// A Step is a load that is held for a while.
type Step struct {
	Number   int           `json:"step"`           // 1, 2, 3 ...
	Clients  int           `json:"clients"`        // virtual clients; in the open model the most that may be busy at once
	Rate     unit.Rate     `json:"rate,omitempty"` // open model: arrivals per second, over all clients
	Poisson  bool          `json:"poisson,omitempty"`
	Ramp     unit.Duration `json:"ramp"`     // clients are started (or stopped) evenly over it
	Warmup   unit.Duration `json:"warmup"`   // at full load, not counted
	Duration unit.Duration `json:"duration"` // counted
	// Jobs is the number of tasks that each client does before it leaves; the step ends with the
	// last of them, or when Duration is over.
	Jobs int `json:"jobs,omitempty"`

	// Cooldown separates the step from the next step if it is above 0: all clients leave, their
	// last operations end, and the service rests for so long.
	Cooldown unit.Duration `json:"cooldown,omitempty"`

	Begin time.Time `json:"begin,omitzero"` // start of the ramp, if several processes must agree on it; zero: at once

	Place int `json:"-"` // position in the plan, from 1, of a step of a resumed run, whose Number differs; 0: Number
}

// Stop contains the conditions that end a run before its last step. Zero values are off.
type Stop struct {
	Time       unit.Duration `json:"time,omitempty" doc:"Time."`
	Count      int64         `json:"count,omitempty" doc:"Number of operations."`
	Bytes      unit.Size     `json:"bytes,omitempty" doc:"Payload."`
	ErrorRatio unit.Fraction `json:"error_ratio,omitempty" doc:"Share of failed or wrong operations in the last ten seconds."`
}

// An Event is a command of the shell that is run on the machine of the run during the load.
type Event struct {
	At  unit.Duration `json:"at" required:"true" doc:"Time from the beginning of the load, its first ramp included."`
	Run string        `json:"run" required:"true" doc:"Command of the shell; it is ended with the load."`
}

// A Find describes the search for the load with the highest throughput. A plan contains it in place
// of steps.
type Find struct {
	Min    int           `json:"min_clients"` // number of clients at which the search begins
	Max    int           `json:"max_clients"` // largest number of clients
	Within unit.Fraction `json:"within"`      // the search ends when the interval of the optimum is no wider than this share
	Time   unit.Duration `json:"time"`        // time limit, from the first step on, over all interrupted parts together

	Ramp     unit.Duration `json:"ramp"`
	Warmup   unit.Duration `json:"warmup"`
	Duration unit.Duration `json:"duration"`         // of most steps
	Longest  unit.Duration `json:"longest_duration"` // of steps that large files or noise prolong
	Cooldown unit.Duration `json:"cooldown"`         // rest between steps, at least
	Calm     unit.Duration `json:"longest_cooldown"` // longest rest, if the servers are still busy
}

// Check returns an error if no search can satisfy the limits.
func (f *Find) Check() error {
	switch {
	case f.Min < 1 || f.Max < f.Min || f.Max > maxClients:
		return fmt.Errorf("a search from %d to %d clients: begin with 1 or more, and end with as many or more, %d at most", f.Min,
			f.Max, maxClients)
	case !(f.Within > 0) || f.Within >= 1:
		return fmt.Errorf("within %v: use more than 0 and less than 100%%", f.Within)
	case f.Duration <= 0 || f.Longest < f.Duration || f.Cooldown <= 0 || f.Calm < f.Cooldown || min(f.Ramp, f.Warmup) < 0:
		return fmt.Errorf("duration %v to %v, cooldown %v to %v, ramp %v, warmup %v: duration and cooldown are above 0, "+
			"and the longest are not shorter", f.Duration, f.Longest, f.Cooldown, f.Calm, f.Ramp, f.Warmup)
	case time.Duration(max(f.Time, f.Longest, f.Calm, f.Ramp, f.Warmup)) > longest:
		return fmt.Errorf("time %v: use up to 366d", f.Time)
	case f.Time < f.Ramp+f.Warmup+f.Duration:
		return fmt.Errorf("time %v: too short, one step takes %v", f.Time, f.Ramp+f.Warmup+f.Duration)
	}
	return nil
}
