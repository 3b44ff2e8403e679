package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/queue"
	"weir/transfer/schedule"
)

// Reasons explain why files of a request wait, or which steps are under way. Files with the same
// key are counted together.
type Reasons struct {
	r       *registry
	Request transfer.Request
	now     time.Time
	One     bool // a single file is explained, with its progress
	all     map[string]*transfer.Reason
}

// Explain returns the reasons of files of a request, which are added to it.
func (f *Leases) Explain(q transfer.Request) *Reasons {
	r := f.r
	return &Reasons{r: r, Request: q, now: r.now(), all: map[string]*transfer.Reason{}}
}

// Add adds a reason of files. file is the first of them.
func (x *Reasons) Add(key, file string, files int64, format string, a ...any) {
	r := x.all[key]
	if r == nil {
		r = &transfer.Reason{File: file, Text: say.Bounded(fmt.Sprintf(format, a...))}
		x.all[key] = r
	}
	r.Files += files
}

// Sorted returns the reasons, sorted by their number of files, descending.
func (x *Reasons) Sorted() []transfer.Reason {
	list := []transfer.Reason{}
	for _, r := range x.all {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b transfer.Reason) int {
		return cmp.Or(cmp.Compare(b.Files, a.Files), cmp.Compare(a.Text, b.Text))
	})
	return list
}

// Prefixed returns a text with a prefix, or "" if the text is empty.
func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// AddFile explains a file, which stands for others.
func (x *Reasons) AddFile(it transfer.Item, replicas []catalog.Replica, files int64) {
	x.r.mu.Lock()
	defer x.r.mu.Unlock()
	switch it.State {
	case transfer.Leased:
		x.leasedLocked(it, files)
	case transfer.NoSource:
		key, text := x.noSourceLocked(replicas)
		x.Add(key, it.Name, files, "%s", text)
	case transfer.Queued:
		key, text := x.queuedLocked(it, replicas)
		x.Add(key, it.Name, files, "%s", text)
	case transfer.FileFailed:
		x.Add("failed "+it.Reason, it.Name, files, "It failed: %s.", it.Reason)
	default:
		x.Add(string(it.State), it.Name, files, "It is %s%s.", it.State, Prefixed(", ", it.Reason))
	}
}

// leasedLocked explains a file that has a mover.
func (x *Reasons) leasedLocked(it transfer.Item, files int64) {
	l := x.r.leases[it.ID]
	if l == nil {
		x.Add("leased", it.Name, files, "It is being copied from %s.", it.Source)
		return
	}
	who := "It is copied without an agent"
	if l.mover != "" {
		who = fmt.Sprintf("The agent of %s has it", l.mover)
	}
	mode := l.Mode
	if l.streamed {
		mode = transfer.Streamed
	}
	link := fmt.Sprintf("from %s to %s (%s)", l.Source.Site, l.Dest.Site, mode)
	silent := x.now.Sub(l.heard)
	switch {
	case l.cancelled:
		x.Add("aborting", it.Name, files, "Its request was cancelled: the transfer %s is being aborted.", link)
	case silent > agentTimeout && l.mover != "":
		x.Add("silent "+l.mover, it.Name, files, "%s and has not reported for %s: at %s the lease expires, "+
			"and the destination is asked for the file.", who, unit.Seconds(silent.Seconds()), say.UTC(l.heard.Add(x.r.lease)))
	case l.stage == "":
		x.Add("next "+l.mover+link, it.Name, files, "%s and begins it as soon as a slot is free, %s.", who, link)
	case l.stage == transfer.Moving && x.One:
		rate := ""
		if s := x.now.Sub(l.began).Seconds(); !l.began.IsZero() && s >= 1 {
			rate = ", at " + unit.Bits(float64(l.moved)/s)
		}
		x.Add("moving", it.Name, 1, "%s: %s of %s moved %s%s.", who, unit.Bytes(float64(l.moved)), unit.Bytes(float64(l.Size)), link, rate)
	default:
		x.Add(string(l.stage)+l.mover+link, it.Name, files, "%s and is %s, %s.", who, l.stage, link)
	}
}

// noSourceLocked explains a file that no available site has.
func (x *Reasons) noSourceLocked(replicas []catalog.Replica) (key, text string) {
	if len(replicas) == 0 {
		return "nowhere", "No site has it."
	}
	var all []string
	for _, r := range replicas {
		s, known := x.r.sites[r.Site]
		why := ""
		switch {
		case !known:
			why = "is not known any more"
		case !x.allows(r.Site):
			why = "is not among the sources that the request allows"
		case r.Bad != "":
			why = "has a bad copy: " + r.Bad
		case !s.Up:
			why = "is " + down(s)
		default: // it came back after the queue had checked it
			if to := x.r.sites[x.Request.To]; !to.Up {
				return x.destinationDown(to)
			}
			return "back", "A site that has it is back: it is looked at again in a moment."
		}
		all = append(all, r.Site+" "+why)
	}
	text = strings.Join(all, "; ")
	return "none " + text, "No site that has it can be used: " + text + "."
}

func (x *Reasons) destinationDown(to catalog.Site) (key, text string) {
	return "dest", fmt.Sprintf("Its destination %s is %s.", x.Request.To, down(to))
}

func down(s catalog.Site) string {
	return "down: " + cmp.Or(s.Problem, "it has not been up since the coordinator started")
}

// allows reports whether the request allows a source.
func (x *Reasons) allows(site string) bool {
	return len(x.Request.From) == 0 || slices.Contains(x.Request.From, site)
}

// bannedSourcesLocked removes the replicas at banned sites. It returns the bans if no other replica
// is left.
func (x *Reasons) bannedSourcesLocked(replicas *[]catalog.Replica) string {
	var why []string
	*replicas = slices.DeleteFunc(*replicas, func(p catalog.Replica) bool {
		b, banned := x.r.bannedAsLocked(x.r.sites[p.Site])
		if banned && !slices.Contains(why, b.Why()) {
			why = append(why, b.Why())
		}
		return banned
	})
	if len(*replicas) > 0 || len(why) == 0 {
		return ""
	}
	return "No source may be used: " + strings.Join(why, "; ") + "."
}

// queuedLocked explains a file that waits.
func (x *Reasons) queuedLocked(it transfer.Item, replicas []catalog.Replica) (key, text string) {
	r := x.r
	to := r.sites[x.Request.To]
	if it.Held {
		return "held " + it.Reason, say.Capital(it.Reason) + "."
	}
	if b, banned := r.bannedAsLocked(to); banned {
		return "ban", "Its destination: " + b.Why() + "."
	}
	switch {
	case it.NotBefore.After(x.now):
		tries := "It waits"
		if it.Tries > 0 {
			tries = "It was tried " + say.Times(int64(it.Tries))
		}
		return "later " + it.Reason, fmt.Sprintf("%s, and is tried again in %s%s.", tries, unit.Seconds(it.NotBefore.Sub(x.now).Seconds()),
			Prefixed(": ", it.Reason))
	case !to.Up:
		return x.destinationDown(to)
	case to.Free >= 0 && to.Free < it.Size:
		return "space", fmt.Sprintf("%s has %s free, and it has %s.", x.Request.To, unit.Bytes(float64(to.Free)), unit.Bytes(float64(it.Size)))
	}
	replicas = slices.DeleteFunc(slices.Clone(replicas), func(p catalog.Replica) bool {
		return p.Bad != "" || p.Site == x.Request.To && x.Request.Job == "" || !r.sites[p.Site].Up || !x.allows(p.Site)
	})
	if text := x.bannedSourcesLocked(&replicas); text != "" {
		return "ban " + text, text
	}
	w := x.r.methodsLocked(x.Request.To, queue.Candidate{Item: it, Dest: x.Request.To, Want: x.Request.Mode, Job: x.Request.Job,
		Replicas: replicas})
	if len(w.sources) == 0 {
		var all []string
		for _, s := range w.none {
			if !slices.Contains(all, w.why[s]) {
				all = append(all, w.why[s])
			}
		}
		text = cmp.Or(strings.Join(all, "; "), "no source is available")
		return "methods " + text, "It cannot be transferred now: " + text + "."
	}
	ch := r.net.Consider(schedule.File{Bytes: max(it.Size, 0), Dest: x.Request.To, Sources: w.sources, Max: r.siteLimitsLocked()}, x.now)
	if ch.Source == "" {
		return "full " + ch.Why, say.Capital(ch.Why) + "."
	}
	return "turn", fmt.Sprintf("It waits for its turn: %s.", ch.Why)
}
