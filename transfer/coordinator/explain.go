package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/queue"
	"weir/transfer/schedule"
)

// explainSample is how many files of each state are looked at to explain a request.
const explainSample = 1000

// explain answers why files of a request do not move now, or what is done with them.
func (c *Coordinator) explain(q *call, _ *struct{}) (e transfer.Explanation, err error) {
	ctx := q.Context()
	r, err := c.queue.Get(ctx, q.number)
	if err != nil {
		return e, err
	}
	x := &explainer{c: c, q: r, now: c.now(), reasons: map[string]*transfer.Reason{}}
	if name := q.param("file"); name != "" {
		var it transfer.Item
		if it, err = c.queue.Find(ctx, q.number, name); err == nil {
			err = x.items(ctx, []transfer.Item{it}, 1)
		}
	} else {
		err = x.request(ctx)
	}
	return transfer.Explanation{Request: r, Reasons: x.sorted()}, err
}

// An explainer collects reasons. Files with the same key are counted together.
type explainer struct {
	c       *Coordinator
	q       transfer.Request
	now     time.Time
	one     bool // a single file is explained, with its progress
	reasons map[string]*transfer.Reason
}

func (x *explainer) add(key, file string, files int64, format string, a ...any) {
	r := x.reasons[key]
	if r == nil {
		r = &transfer.Reason{File: file, Text: sentence(fmt.Sprintf(format, a...))}
		x.reasons[key] = r
	}
	r.Files += files
}

func (x *explainer) sorted() []transfer.Reason {
	all := []transfer.Reason{}
	for _, r := range x.reasons {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b transfer.Reason) int {
		return cmp.Or(cmp.Compare(b.Files, a.Files), cmp.Compare(a.Text, b.Text))
	})
	return all
}

// request explains all files.
func (x *explainer) request(ctx context.Context) error {
	n := x.q.Count
	files := cmp.Or(n.Files, x.q.Asked.Files) // while none is in the queue
	switch {
	case x.q.Status == transfer.Awaiting:
		x.add("awaiting", "", files, "It awaits approval by somebody with the role %s.", mayApprove)
		return nil
	case x.q.Status.Ended():
		x.add("ended", "", files, "It has ended: %s%s.", x.q.Status, prefixed(", ", x.q.Reason))
		return nil
	case x.q.Status == transfer.Resolving:
		x.add("resolving", "", 0, "Its files are being added to the queue: %d of %s so far.", n.Files, say.Plural(int(x.q.Asked.Files), "file"))
	}
	counts := map[transfer.State]int64{transfer.Queued: n.Queued, transfer.NoSource: n.NoSource, transfer.Leased: n.Leased,
		transfer.FileFailed: n.Failed}
	for state, count := range counts {
		if count == 0 {
			continue
		}
		items, err := x.c.itemsAfter(ctx, x.q.ID, state, 0, explainSample)
		if err != nil {
			return err
		}
		if err := x.items(ctx, items, count); err != nil {
			return err
		}
	}
	return nil
}

// prefixed returns a text with a prefix, "" if the text is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// items explains the first of count files; those that follow are like the last.
func (x *explainer) items(ctx context.Context, items []transfer.Item, count int64) error {
	replicas, err := x.replicas(ctx, items)
	if err != nil {
		return err
	}
	x.one = len(items) == 1 && count == 1
	for i, it := range items {
		files := int64(1)
		if i == len(items)-1 {
			files = max(1, count-int64(len(items))+1)
		}
		x.item(it, replicas[it.Name], files)
	}
	return nil
}

// replicas returns the replicas of waiting files by name.
func (x *explainer) replicas(ctx context.Context, items []transfer.Item) (map[string][]catalog.Replica, error) {
	if x.q.Job != "" {
		return x.c.queue.PairReplicas(ctx, items)
	}
	var names []string
	for _, it := range items {
		if it.State == transfer.Queued || it.State == transfer.NoSource {
			names = append(names, it.Name)
		}
	}
	all := map[string][]catalog.Replica{}
	for part := range slices.Chunk(names, explainSample) {
		list, err := x.c.catalog.Find(ctx, part...)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		for _, p := range list {
			all[p.Name] = p.Replicas
		}
	}
	return all, nil
}

func (x *explainer) item(it transfer.Item, replicas []catalog.Replica, files int64) {
	x.c.registry.mu.Lock()
	defer x.c.registry.mu.Unlock()
	switch it.State {
	case transfer.Leased:
		x.leasedLocked(it, files)
	case transfer.NoSource:
		key, text := x.noSourceLocked(replicas)
		x.add(key, it.Name, files, "%s", text)
	case transfer.Queued:
		key, text := x.queuedLocked(it, replicas)
		x.add(key, it.Name, files, "%s", text)
	case transfer.FileFailed:
		x.add("failed "+it.Reason, it.Name, files, "It failed: %s.", it.Reason)
	default:
		x.add(string(it.State), it.Name, files, "It is %s%s.", it.State, prefixed(", ", it.Reason))
	}
}

// leasedLocked explains a file that has a mover.
func (x *explainer) leasedLocked(it transfer.Item, files int64) {
	l := x.c.registry.leases[it.ID]
	if l == nil {
		x.add("leased", it.Name, files, "It is being copied from %s.", it.Source)
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
		x.add("aborting", it.Name, files, "Its request was cancelled: the transfer %s is being aborted.", link)
	case silent > agentTimeout && l.mover != "":
		x.add("silent "+l.mover, it.Name, files, "%s and has not reported for %s: at %s the lease expires, "+
			"and the destination is asked for the file.", who, unit.Seconds(silent.Seconds()), clockTime(l.heard.Add(x.c.conf.Lease)))
	case l.stage == "":
		x.add("next "+l.mover+link, it.Name, files, "%s and begins it as soon as a slot is free, %s.", who, link)
	case l.stage == transfer.Moving && x.one:
		rate := ""
		if s := x.now.Sub(l.began).Seconds(); !l.began.IsZero() && s >= 1 {
			rate = ", at " + unit.Bits(float64(l.moved)/s)
		}
		x.add("moving", it.Name, 1, "%s: %s of %s moved %s%s.", who, unit.Bytes(float64(l.moved)), unit.Bytes(float64(l.Size)), link, rate)
	default:
		x.add(string(l.stage)+l.mover+link, it.Name, files, "%s and is %s, %s.", who, l.stage, link)
	}
}

// noSourceLocked explains a file that no available site has.
func (x *explainer) noSourceLocked(replicas []catalog.Replica) (key, text string) {
	if len(replicas) == 0 {
		return "nowhere", "No site has it."
	}
	var all []string
	for _, r := range replicas {
		s, known := x.c.registry.sites[r.Site]
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
		default: // it came back after the queue had looked
			if to := x.c.registry.sites[x.q.To]; !to.Up {
				return x.destinationDown(to)
			}
			return "back", "A site that has it is back: it is looked at again in a moment."
		}
		all = append(all, r.Site+" "+why)
	}
	text = strings.Join(all, "; ")
	return "none " + text, "No site that has it can be used: " + text + "."
}

func (x *explainer) destinationDown(to catalog.Site) (key, text string) {
	return "dest", fmt.Sprintf("Its destination %s is %s.", x.q.To, down(to))
}

func down(s catalog.Site) string {
	return "down: " + cmp.Or(s.Problem, "it has not been up since the coordinator started")
}

// allows reports whether the request allows a source.
func (x *explainer) allows(site string) bool {
	return len(x.q.From) == 0 || slices.Contains(x.q.From, site)
}

// bannedSourcesLocked removes the replicas at banned sites. It returns the bans if no other is left.
func (x *explainer) bannedSourcesLocked(replicas *[]catalog.Replica) string {
	var why []string
	*replicas = slices.DeleteFunc(*replicas, func(p catalog.Replica) bool {
		b, banned := x.c.registry.bannedAsLocked(x.c.registry.sites[p.Site])
		if banned && !slices.Contains(why, b.why()) {
			why = append(why, b.why())
		}
		return banned
	})
	if len(*replicas) > 0 || len(why) == 0 {
		return ""
	}
	return "No source may be used: " + strings.Join(why, "; ") + "."
}

// queuedLocked explains a file that waits.
func (x *explainer) queuedLocked(it transfer.Item, replicas []catalog.Replica) (key, text string) {
	r := &x.c.registry
	to := r.sites[x.q.To]
	if it.Held {
		return "held " + it.Reason, say.Capital(it.Reason) + "."
	}
	if b, banned := r.bannedAsLocked(to); banned {
		return "ban", "Its destination: " + b.why() + "."
	}
	switch {
	case it.NotBefore.After(x.now):
		tries := "It waits"
		if it.Tries > 0 {
			tries = "It was tried " + say.Times(int64(it.Tries))
		}
		return "later " + it.Reason, fmt.Sprintf("%s, and is tried again in %s%s.", tries, unit.Seconds(it.NotBefore.Sub(x.now).Seconds()),
			prefixed(": ", it.Reason))
	case !to.Up:
		return x.destinationDown(to)
	case to.Free >= 0 && to.Free < it.Size:
		return "space", fmt.Sprintf("%s has %s free, and it has %s.", x.q.To, unit.Bytes(float64(to.Free)), unit.Bytes(float64(it.Size)))
	}
	replicas = slices.DeleteFunc(slices.Clone(replicas), func(p catalog.Replica) bool {
		return p.Bad != "" || p.Site == x.q.To && x.q.Job == "" || !r.sites[p.Site].Up || !x.allows(p.Site)
	})
	if text := x.bannedSourcesLocked(&replicas); text != "" {
		return "ban " + text, text
	}
	w := x.c.methodsLocked(x.q.To, queue.Candidate{Item: it, Dest: x.q.To, Want: x.q.Mode, Job: x.q.Job, Replicas: replicas})
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
	ch := r.net.Consider(schedule.File{Bytes: max(it.Size, 0), Dest: x.q.To, Sources: w.sources, Max: r.siteLimitsLocked()}, x.now)
	if ch.Source == "" {
		return "full " + ch.Why, say.Capital(ch.Why) + "."
	}
	return "turn", fmt.Sprintf("It waits for its turn: %s.", ch.Why)
}
