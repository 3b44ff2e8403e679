package scenario

import (
	"fmt"
	"slices"
	"time"

	"weir/internal/unit"
	"weir/loadtest/workload"
)

func (c *checker) files() {
	f := c.Files
	ways := 0
	for _, is := range []bool{f.List != "", f.Listing, f.Make != nil} {
		if is {
			ways++
		}
	}
	switch {
	case ways > 1:
		c.say("files", "list, listing and make exclude each other; keep one")
	case ways > 0 && !c.needsFiles() && !slices.Contains(c.operations(), "list"):
		c.say("files", "workload.kind %s reads no files; omit files", c.Work.Kind)
	}
	c.selection()
	if f.Make == nil {
		return
	}
	if n := f.Make.Count; n < 1 || n > 10_000_000 {
		c.say("files.make.count", "%d is out of range; make 1 to 10000000 files", n)
	}
	if _, err := f.Make.Size.Sampler(); err != nil {
		c.say("files.make.size", "%v", err)
	} else if j := c.Work.Job; c.Work.Kind == workload.JobWork && j != nil && f.Make.Size.Most() < j.Bytes() {
		c.say("files.make.size", "%s is too small for a job of %d events of %v; make files of %s or more, or omit size", f.Make.Size.Text(),
			j.Events, j.Event, unit.Size(j.Bytes()))
	}
}

func (c *checker) load() {
	l := c.Load
	open := len(l.Rate) > 0
	if len(l.Clients) > 0 && open {
		c.say("load.rate", "clients (closed load) and rate (open load) exclude each other; keep one, and limit the clients of an open load "+
			"with max_clients")
	}
	for i, n := range l.Clients {
		if n < 0 || n > maxClients { // decoding sets the value to 0 after a reported mistake
			c.say(fmt.Sprintf("load.clients.%d", i), "%d: a step has 1 to %d clients", n, maxClients)
		}
	}
	for i, r := range l.Rate {
		if !(r >= 0) || r > 1e9 { // as above
			c.say(fmt.Sprintf("load.rate.%d", i), "%v: an arrival rate is above 0 and at most 1000000000/s", r)
		}
	}
	if n := l.MaxClients; n < 1 || n > maxClients {
		c.say("load.max_clients", "%d: use 1 to %d", n, maxClients)
	}
	for _, key := range []string{"load.arrivals", "load.max_clients"} {
		c.refuse(c.given(key) && !open, key, "applies to open load only; give load.rate as well, or omit it")
	}
	switch {
	case l.Jobs < 0 || l.Jobs > 1_000_000_000:
		c.say("load.jobs", "%d: each client does 1 to 1000000000 jobs; 0: as many as it can in the measurement time", l.Jobs)
	case l.Jobs > 0 && open:
		c.say("load.jobs", "is for closed load (load.clients), whose clients leave when they are done: in open load (load.rate) jobs arrive "+
			"until the measurement time is over")
	}
	c.refuse(l.Duration <= 0, "load.duration", "must be above 0: it is the time that counts")
	c.times()
}

// repeat checks that a campaign has an end. The matrix' own size was checked
// when it was read.
func (c *checker) repeat() {
	c.refuse(c.Repeat < 1 || c.Repeat > maxRuns, "repeat", "%d: use 1 to %d", c.Repeat, maxRuns)
}

// longest is the longest that a run may be planned to take.
const longest = 366 * 24 * time.Hour

func (c *checker) times() {
	l := c.Load
	for key, d := range map[string]unit.Duration{"ramp": l.Ramp, "warmup": l.Warmup, "duration": l.Duration, "cooldown": l.Cooldown,
		"graceful_stop": l.GracefulStop, "error_pause": l.ErrorPause} {
		if d < 0 || time.Duration(d) > longest {
			c.say("load."+key, "%v: use up to 366d", d)
			return
		}
	}
	steps := max(len(l.Clients), len(l.Rate))
	if each := time.Duration(l.Ramp + l.Warmup + l.Duration + l.Cooldown); steps > 0 && each > longest/time.Duration(steps) {
		c.say("load.duration", "%d steps of %v are longer than a year", steps, unit.Duration(each))
	}
}
