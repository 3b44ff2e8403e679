package workload

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"weir/internal/tags"
	"weir/internal/unit"
	"weir/storage"
)

// A KeyError reports an invalid key of a workload, with a valid alternative. Key is the path from
// the key workload, such as "think.uniform".
type KeyError struct {
	Key  string
	Text string
}

// Error returns "workload.key: text".
func (e *KeyError) Error() string { return "workload." + e.Key + ": " + e.Text }

// Check returns the errors of all invalid keys of w, as *KeyErrors joined by errors.Join, or nil. A
// key that is not set has its default: pick random, part.order random, part.count 1.
func Check(w Work) error {
	c := &checker{Work: w, ops: choose(w)}
	c.kind()
	c.mix()
	c.pick()
	c.part()
	c.amounts()
	c.payload()
	c.job()
	return errors.Join(c.errs...)
}

// A checker collects the errors of invalid keys.
type checker struct {
	Work
	ops  choice
	errs []error
}

// refuse reports the key if it is bad.
func (c *checker) refuse(bad bool, key, format string, args ...any) {
	if bad {
		c.errs = append(c.errs, &KeyError{Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

// oneOf reports the key unless it allows the value.
func (c *checker) oneOf(key, value string) {
	if known := tags.Words[Work](key); !slices.Contains(known, value) {
		c.refuse(true, key, "unknown %s %q; use one of %s", key[strings.LastIndexByte(key, '.')+1:], value, strings.Join(known, ", "))
	}
}

// mixable returns the operations that the key mix may weigh.
func mixable(kind Kind) []string {
	if kind == MetadataWork {
		return []string{"stat", "list", "mkdir", "remove", "move", "locate", "ping"}
	}
	return []string{"read", "write", "stat", "list", "mkdir", "remove", "checksum", "login", "move", "locate", "ping"}
}

func (c *checker) kind() {
	c.oneOf("kind", string(c.Kind))
	weighed, known := c.Kind == MixWork || c.Kind == MetadataWork, mixable(c.Kind)
	c.refuse(weighed && len(c.Mix) == 0, "mix", "missing; kind %s needs weights, such as {%s: 9, %s: 1}", c.Kind, known[0], known[1])
	c.refuse(!weighed && len(c.Mix) > 0, "mix", "kind %s takes no weights; use kind mix, or omit mix", c.Kind)
}

func (c *checker) mix() {
	if c.Kind != MixWork && c.Kind != MetadataWork || len(c.Mix) == 0 {
		return
	}
	known := mixable(c.Kind)
	for _, name := range slices.Sorted(maps.Keys(c.Mix)) {
		if !slices.Contains(known, name) {
			c.refuse(true, "mix."+name, "kind %s cannot weigh %q; use %s", c.Kind, name, strings.Join(known, ", "))
		}
	}
	if err := weights(c.Mix); err != nil {
		c.refuse(true, "mix", "%v", err)
	}
	from, what := "write", "files that it wrote"
	if c.Kind == MetadataWork {
		from, what = "mkdir", "folders that it made"
	}
	for _, name := range []string{"remove", "move"} {
		c.refuse(c.Mix[name] > 0 && c.Mix[from] <= 0, "mix."+name, "a run applies %s only to %s; give %s a weight as well", name, what, from)
	}
}

func (c *checker) pick() {
	if c.Pick != "" {
		c.oneOf("pick", c.Pick)
	}
	zipf := c.Pick == "zipf"
	c.refuse(!zipf && c.Skew != 0, "skew", "applies to pick: zipf only; omit it")
	c.refuse(zipf && (!(c.Skew > 1) || c.Skew > 100), "skew", "%v is out of range; use an exponent above 1 and at most 100, such as 1.2",
		c.Skew)
}

// MaxParts is the number of ranges that one read may request.
const MaxParts = 4096

func (c *checker) part() {
	p := c.Part
	if p == nil {
		return
	}
	c.refuse(p.Size <= 0, "part.size", "%d is too small; a part has at least one byte", p.Size)
	c.refuse(p.Count < 0 || p.Count > MaxParts, "part.count", "%d is out of range; use 1 to %d", p.Count, MaxParts)
	if p.Order != "" {
		c.oneOf("part.order", p.Order)
	}
	c.refuse(!c.ops.has(storage.Read) && c.Kind != CommandJobWork, "part", "kind %s reads no files; omit part", c.Kind)
}

// payload checks how files are read and written.
func (c *checker) payload() {
	reads, writes := c.ops.has(storage.Read), c.ops.has(storage.Write)
	c.refuse(c.Plain && !reads && !writes, "plain", "kind %s moves no payload; omit plain", c.Kind)
	c.refuse(c.Sync && !writes && !outputs(c.Work), "sync", "kind %s writes no files; omit sync", c.Kind)
	c.refuse(c.KeepOpen && !reads && c.Kind != CommandJobWork, "keep_open", "kind %s reads no files; omit keep_open", c.Kind)
	c.refuse(c.Kind == CopyWork && c.Session == SharedSession, "session", "the end of its connection cancels a copy, so clients of kind copy "+
		"cannot share a session; use kept or fresh")
	c.refuse(c.Kind == CopyWork && (c.Chunk != 0 || c.InFlight != 0), "kind", "the servers of a copy choose their requests; omit chunk and "+
		"in_flight, or set origin.streams")
	c.refuse(c.KeepOpen && c.Session == FreshSession, "keep_open", "files stay open only as long as the session; use session: kept, "+
		"or omit keep_open")
}

func (c *checker) amounts() {
	if err := c.Think.check(); err != nil {
		c.refuse(true, "think", "%v", err)
	}
	if _, err := c.Size.Sampler(); err != nil {
		c.refuse(true, "size", "%v", err)
	}
	reads, writes := c.ops.has(storage.Read), c.ops.has(storage.Write)
	unset := c.Size.Fixed == 0 && c.Size.Uniform == nil && c.Size.Weights == nil
	c.refuse(writes && unset, "size", "missing; give the size of written files, such as 1MiB")
	c.refuse(!(c.Verify >= 0 && c.Verify <= 1), "verify", "%v is out of range; use a share of 0%% to 100%%", float64(c.Verify))
	if c.Sum != "" || c.Verify > 0 && (reads || writes || c.Kind == CopyWork) || c.ops.has(storage.Checksum) {
		c.oneOf("checksum", c.Sum)
	}
	c.refuse(c.Chunk < 0 || c.Chunk > 1<<30, "chunk", "%d bytes is out of range; use up to 1GiB, or 0 to let the driver choose", c.Chunk)
	c.refuse(c.InFlight < 0 || c.InFlight > 1<<16, "in_flight", "%d is out of range; use up to 65536, or 0 to let the driver choose",
		c.InFlight)
	c.refuse(c.Timeout < 0, "timeout", "cannot be negative; use 0 for none")
	c.refuse(c.Kind == CopyWork && c.Retries > 0, "retries", "a copy that failed may have left a part of the file, which is not replaced; "+
		"omit retries")
	c.refuse(c.Retries < 0, "retries", "cannot be negative; use 0 for none")
}

// Limits of a job, which only typing mistakes exceed.
const (
	maxEvents  = 1_000_000_000
	maxEvent   = unit.Size(1 << 40)
	maxRequest = unit.Size(512 << 20) // fits in one response of every protocol
	maxCompute = 366 * 24 * time.Hour
)

func (c *checker) job() {
	j := c.Job
	if c.Kind != JobWork && c.Kind != CommandJobWork {
		c.refuse(j != nil, "job", "applies to kind job only; omit it for kind %s", c.Kind)
		return
	}
	c.refuse(c.KeepOpen, "keep_open", "a job opens and closes its file itself; omit keep_open")
	if c.Kind == CommandJobWork {
		c.refuse(j != nil, "job", "applies to kind job only; omit it for kind %s", c.Kind)
		for key, given := range map[string]bool{"part": c.Part != nil, "chunk": c.Chunk != 0, "in_flight": c.InFlight != 0} {
			c.refuse(given, key, "the program of a command-job reads in its own way; omit %s", key)
		}
		return
	}
	if j == nil {
		c.refuse(true, "job", "missing; describe a job, such as {events: 3000, event_size: 40KiB, page: 8KiB, compute: 1ms}")
		return
	}
	c.events(j)
	c.access(j)
	c.output(j)
	c.refuse(c.Part != nil, "part", "a job reads pages; use job.event_size and job.page")
	if err := j.Compute.check(); err != nil {
		c.refuse(true, "job.compute", "%v", err)
	} else {
		c.refuse(j.Compute.most() > maxCompute, "job.compute", "more than a year for each event; use less")
	}
	c.refuse(j.Burn && j.Compute.most() <= 0, "job.burn", "there is nothing to compute; give job.compute as well")
}

// events checks the keys of the events that a job reads.
func (c *checker) events(j *Job) {
	c.refuse(j.Events < 1 || j.Events > maxEvents, "job.events", "%d is out of range; use 1 to %d", j.Events, maxEvents)
	c.refuse(j.Event < 1 || j.Event > maxEvent, "job.event_size", "%v is out of range; use 1B to %v", j.Event, maxEvent)
	c.refuse(j.Event >= 1 && j.Event <= maxEvent && j.Events >= 1 && j.Events <= maxEvents && int64(j.Events) > math.MaxInt64/4/int64(j.Event),
		"job.events", "no file is as large as %d events of %v; use fewer", j.Events, j.Event)
	switch {
	case j.Page < 1 || j.Page > maxRequest:
		c.refuse(true, "job.page", "%v is out of range; use 1B to %v", j.Page, maxRequest)
	case j.Event > 0 && j.Page > j.Event:
		c.refuse(true, "job.page", "%v is more than an event; use %v or less, or job.read_ahead to request several events at once",
			j.Page, j.Event)
	case j.Event > 0 && j.Event <= maxEvent && j.pages() > maxEvents:
		c.refuse(true, "job.page", "an event of %v would have %d pages of %v; use at most %d", j.Event, j.pages(), j.Page, maxEvents)
	}
	for key, share := range map[string]unit.Fraction{"job.skim": j.Skim, "job.slim": j.Slim} {
		c.refuse(!(share > 0 && share <= 1), key, "%v is out of range; use a share above 0%%, and at most 100%%", float64(share))
	}
	c.refuse(j.Vector < 0 || j.Vector > MaxParts, "job.vector", "%d is out of range; use 2 to %d pages in one request, or omit it",
		j.Vector, MaxParts)
	outside := j.Ahead < 0 || j.Ahead > maxRequest
	c.refuse(outside, "job.read_ahead", "%v is out of range; use up to %v, or 0 for none", j.Ahead, maxRequest)
	c.refuse(!outside && j.Ahead != 0 && j.Ahead < j.Page, "job.read_ahead", "%v is less than a page; use %v or more, or 0 for none",
		j.Ahead, j.Page)
}

// access checks the keys of each of the ways in which a job reads its events.
func (c *checker) access(j *Job) {
	switch j.Access {
	case Staged:
		c.refuse(j.Copy < 0, "job.copy_timeout", "cannot be negative; use 0 for none")
		c.refuse(j.Quota < 0, "job.scratch_quota", "cannot be negative; use 0 for none")
		c.refuse(strings.ContainsRune(j.Scratch, 0), "job.scratch", "%q is not a path; name a folder", j.Scratch)
	case Direct:
		for key, given := range map[string]bool{"job.scratch": j.Scratch != "", "job.copy_timeout": j.Copy != 0,
			"job.scratch_quota": j.Quota != 0} {
			c.refuse(given, key, "applies to access: staged only; omit it")
		}
		c.refuse(c.Chunk != 0, "chunk", "applies to the copies of staged jobs only; other jobs request job.page bytes at once")
		c.refuse(c.InFlight != 0, "in_flight", "applies to the copies of staged jobs only; other jobs use job.read_ahead")
	default:
		c.oneOf("job.access", j.Access)
	}
}
