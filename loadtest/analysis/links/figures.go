package links

import (
	"weir/internal/cause"
	"weir/loadtest/analysis/fact"
	"weir/storage"
)

// Challenge is the result of a data challenge: its links, its sites and the whole. Rates are in
// bytes/s of payload, times in seconds. Pauses of the profile count nowhere.
type Challenge struct {
	Minute       float64     `json:"minute_seconds"`      // length of a minute of the analysis: 60; less in rehearsals, more in long challenges of many links
	Seconds      float64     `json:"measured_seconds"`    // time with a target above 0 that was measured
	Planned      float64     `json:"planned_seconds"`     // the same by the profile
	Interrupted  bool        `json:"interrupted"`         // it did not end as planned, or was resumed
	Level        float64     `json:"level_ratio"`         // highest target that was set, over the rates of the links
	LevelSeconds float64     `json:"level_seconds"`       // time at that level
	Links        []Link      `json:"links"`               // the lowest share of the target at that level first
	Sites        []Site      `json:"sites"`               // in the order of the plan
	Total        Total       `json:"total"`               // of all links together
	Control      Control     `json:"control"`             // was weir itself in time?
	Headline     []fact.Fact `json:"challenge_facts"`     // the result; the first fact is the headline
	Clock        *float64    `json:"clock_ahead_seconds"` // least difference of the service's clock; nil: not seen
}

// A Link is one directed link between two sites.
type Link struct {
	Source   string   `json:"source"`
	Dest     string   `json:"destination"`
	Target   float64  `json:"target_bytes_per_second"` // mean over the measured time
	Achieved float64  `json:"achieved_bytes_per_second"`
	Low      *float64 `json:"achieved_low_bytes_per_second"` // 95% interval of the mean; nil: the time was too short
	High     *float64 `json:"achieved_high_bytes_per_second"`
	Ratio    float64  `json:"achieved_ratio"`       // achieved over target
	Level    float64  `json:"level_achieved_ratio"` // the same while the target was at the challenge's highest level
	Minutes  int      `json:"minutes"`              // that were judged
	Below    int      `json:"minutes_below"`        // of these: less than 95% of the target's bytes
	Within   float64  `json:"within_ratio"`         // share of the minutes within 5% of the target

	Files    int64     `json:"files"` // copies that arrived
	Bytes    int64     `json:"arrived_bytes"`
	Failed   int64     `json:"failed_copies"` // including those of Expired
	Failures []Failure `json:"failures"`      // by class and end, the most frequent first
	Expired  int64     `json:"expired"`       // copies that failed since their credentials had ended
	Retries  int64     `json:"retries"`       // attempts after the first one of a copy, as far as the service reports them
	SciTag   int       `json:"scitag"`        // flow label by the plan; 0: without
	Labeled  int64     `json:"labeled"`       // copies that carried it
	Flight   float64   `json:"in_flight"`     // copies in flight, mean
	Queued   float64   `json:"queued"`        // of these not begun by the service, mean

	Queue    *Phase `json:"queue_seconds"`        // from the request to the first byte
	Transfer *Phase `json:"transfer_seconds"`     // from the first byte to the last
	Verify   *Phase `json:"verification_seconds"` // from the last byte to the end
	Whole    *Phase `json:"whole_seconds"`        // from the request to the end

	Cause    *Cause    `json:"leading_cause"` // that took the most bytes; nil: the link held the level, or reached its target in all minutes
	Causes   []Share   `json:"causes"`        // of the minutes below the target, the most missing bytes first
	Episodes []Episode `json:"episodes"`      // minutes below the target with the same cause, by time; the first hundred
}

// A Phase has the durations of a phase of the copies that arrived, in seconds, each within 1.1%.
type Phase struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// A Failure counts failed copies of one class at one end.
type Failure struct {
	Class  storage.Class `json:"class"`
	End    string        `json:"end"` // source, destination or unknown
	Copies int64         `json:"copies"`
}

// Ends of a link to which a failure belongs.
const (
	EndSource  = "source"
	EndDest    = "destination"
	EndUnknown = "unknown"
)

// A Kind is the part of a data challenge that held a link below its target.
type Kind string

// Kinds of causes.
const (
	Source      Kind = "source"      // storage of the source
	Dest        Kind = "destination" // storage of the destination
	Line        Kind = "line"        // network between them; see Cause.Shared
	Service     Kind = "service"     // transfer service
	Credentials Kind = "credentials"
	Injection   Kind = "injection" // weir: the controller, its limits and its machine
	Unknown     Kind = "unknown"   // cannot tell
)

// Details of causes. An empty detail means that the evidence does not distinguish them.
const (
	Disk       = "disk"        // disks are busy
	CPU        = "cpu"         // all cores are busy
	Interface  = "interface"   // network interface of the site, at its rate
	Capacity   = "capacity"    // stated capacity of the site
	SiteLine   = "site_line"   // line of the site: its emulation reports so, or disks and cores of the site are idle
	Trunk      = "trunk"       // line that several links share
	Own        = "own"         // line of this link alone
	Refuses    = "refuses"     // the site refuses copies
	Fails      = "fails"       // copies fail at the site
	Away       = "away"        // the site does not answer
	Full       = "full"        // the site stores no files: it is full, or its disks are broken
	Door       = "door"        // the site carries few copies at once, the others wait
	Login      = "login"       // each copy has a cost whatever its size
	Checksum   = "checksum"    // verification after the last byte
	Queue      = "queue"       // copies wait at the service
	Starts     = "starts"      // the service begins few copies per second
	Answers    = "answers"     // requests to the service fail, take long or are put off
	Expired    = "expired"     // credentials had ended
	Denied     = "denied"      // credentials are refused
	Issuer     = "issuer"      // the issuer of credentials fails or takes long
	Copies     = "in_flight"   // limit of copies in flight
	SmallFiles = "small_files" // the limit of copies, and files too small for it
	LargeFiles = "large_files" // one file is more than the target rate needs
	Ceiling    = "ceiling"     // limit of all links together
	Late       = "late"        // weir was late
	Start      = "start"       // the rate follows a change of the target
	Pacing     = "control"     // the controller requested too few copies
)

// A Cause is the cause of a rate below the target.
type Cause struct {
	Kind      Kind            `json:"kind"`
	Detail    string          `json:"detail,omitempty"`
	Site      string          `json:"site,omitempty"`   // of storage, and of the line of a site
	Shared    []string        `json:"shared,omitempty"` // other links on the same line, as "A to B"
	Certainty cause.Certainty `json:"certainty"`
	Among     []string        `json:"among,omitempty"` // of Unknown: causes that the evidence does not distinguish
	Evidence  []fact.Fact     `json:"evidence"`        // of the minutes with the most missing bytes that were judged together
	Excluded  []fact.Fact     `json:"excluded"`        // evidence of the same minutes against other causes
	Fact      fact.Fact       `json:"fact"`            // names the cause
}

// A Share is the part of a cause in the minutes below the target.
type Share struct {
	Cause
	Minutes int     `json:"minutes"`
	Missing float64 `json:"missing_bytes"`
	Ratio   float64 `json:"missing_ratio"` // of all missing bytes of the link
}

// An Episode is a sequence of minutes below the target with the same cause.
type Episode struct {
	Cause
	From    float64 `json:"from_seconds"` // since the first line of links.jsonl
	To      float64 `json:"to_seconds"`
	Ratio   float64 `json:"achieved_ratio"`
	Missing float64 `json:"missing_bytes"`
}

// A Site has the sums of the links of a site.
type Site struct {
	Site string `json:"site"`
	In   Side   `json:"in"`
	Out  Side   `json:"out"`
	// HostIn and HostOut compare with the counters of the site's hosts; nil: not possible
	HostIn  *Counted `json:"host_in"`
	HostOut *Counted `json:"host_out"`
}

// A Side is one direction of a site.
type Side struct {
	Links    int      `json:"links"`
	Target   float64  `json:"target_bytes_per_second"`
	Mean     float64  `json:"mean_bytes_per_second"`
	Max      float64  `json:"max_bytes_per_second"`      // of the busiest minute
	Capacity *float64 `json:"capacity_bytes_per_second"` // as stated in the plan
	Usage    *float64 `json:"capacity_ratio"`            // busiest minute over capacity
}

// A Total has the sums of all links.
type Total struct {
	Target   float64  `json:"target_bytes_per_second"`
	Achieved float64  `json:"achieved_bytes_per_second"`
	Low      *float64 `json:"achieved_low_bytes_per_second"`
	High     *float64 `json:"achieved_high_bytes_per_second"`
	Ratio    float64  `json:"achieved_ratio"`
	Held     int      `json:"links_held"` // links with 95% of their target or more at the highest level
	Files    int64    `json:"files"`
	Bytes    int64    `json:"arrived_bytes"`
	Failed   int64    `json:"failed_copies"`
	Expired  int64    `json:"expired"`
	Labeled  int64    `json:"labeled"`
	Missing  float64  `json:"missing_bytes"` // of all links and minutes below the target
	Causes   []Share  `json:"causes"`        // of all links together, the most missing bytes first
	Starts   float64  `json:"starts_per_second"`
	// Service and Injection are the shares of the missing bytes that the transfer service and weir took.
	Service   float64 `json:"service_ratio"`
	Injection float64 `json:"injection_ratio"`
}

// Control has the figures of weir's own work.
type Control struct {
	Gap      float64  `json:"longest_gap_seconds"`  // between two lines of a link
	Missing  float64  `json:"gap_ratio"`            // share of the time that no line covers, other than before a resume
	LateMost float64  `json:"longest_line_seconds"` // line of a link, planned are 1 s or 10 s
	CPU      *float64 `json:"cpu_max"`              // weir's machine, busiest minute; nil: not monitored
	Starved  int      `json:"starved_minutes"`      // with lines that are late and cores that are busy
	Resumes  int      `json:"resumes"`
}

// Name returns the name of the link.
func (l *Link) Name() string { return l.Source + " to " + l.Dest }

// Held reports whether the link carried 95% of its target or more at the highest level.
func (l *Link) Held() bool { return l.Level >= leastRatio }

// A Series is a link against time, for plots.
type Series struct {
	Source, Dest string
	Points       []Point
}

// A Point is one minute of a link.
type Point struct {
	At, Seconds      float64 // middle, since the first line of links.jsonl; measured time
	Target, Achieved float64 // bytes/s
	Flight, Queued   float64 // copies, mean
	Failed           int     // copies
	Below            bool    // less than 95% of the target's bytes
	Kind             Kind    // of the cause, if Below
	Detail           string  // the same
}
