package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/queue"
	"weir/transfer/schedule"
)

// looked is how many files of each state are looked at to explain a request.
const looked = 1000

// explain says why files of a request do not move now, or what they are doing.
func (c *Coordinator) explain(r *http.Request, _ *struct{}) (transfer.Explanation, error) {
	id, err := c.reading(r)
	if err != nil {
		return transfer.Explanation{}, err
	}
	ctx := r.Context()
	q, err := c.queue.Get(ctx, id)
	if err != nil {
		return transfer.Explanation{}, c.refusal(err)
	}
	x := &explainer{c: c, q: q, now: c.now(), reasons: map[string]*transfer.Reason{}}
	if name := r.URL.Query().Get("file"); name != "" {
		var it transfer.Item
		if it, err = c.queue.Find(ctx, id, name); err == nil {
			err = x.items(ctx, []transfer.Item{it}, 1)
		}
	} else {
		err = x.request(ctx)
	}
	return transfer.Explanation{Request: c.shown(q), Reasons: x.sorted()}, c.refusal(err)
}

// An explainer gathers reasons. Files with the same one are counted together.
type explainer struct {
	c       *Coordinator
	q       transfer.Request
	now     time.Time
	one     bool // a single file is explained: how far it is matters, too
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
	switch {
	case x.q.Status == transfer.Awaiting:
		x.add("awaiting", "", x.files(), "It awaits approval by somebody with the role %s.", mayApprove)
		return nil
	case x.q.Status.Ended():
		x.add("ended", "", x.files(), "It has ended: %s%s.", x.q.Status, because(x.q.Reason))
		return nil
	case x.q.Status == transfer.Resolving:
		x.add("resolving", "", 0, "Its files are being written down: %d of %s so far.", n.Files, say.Plural(int(x.q.Asked.Files), "file"))
	}
	for state, count := range map[transfer.State]int64{transfer.Queued: n.Queued, transfer.NoSource: n.NoSource, transfer.Leased: n.Leased, transfer.FileFailed: n.Failed} {
		if count == 0 {
			continue
		}
		items, err := x.c.pageOf(ctx, x.q.ID, state, 0, looked)
		if err != nil {
			return err
		}
		if err := x.items(ctx, items, count); err != nil {
			return err
		}
	}
	return nil
}

// files are how many the request is about: those that were asked for as long as
// none is written down.
func (x *explainer) files() int64 { return cmp.Or(x.q.Count.Files, x.q.Asked.Files) }

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ", " + reason
}

// items explains files that stand for so many.
func (x *explainer) items(ctx context.Context, items []transfer.Item, count int64) error {
	placed, err := x.placed(ctx, items)
	if err != nil {
		return err
	}
	x.one = len(items) == 1 && count == 1
	for i, it := range items {
		files := int64(1)
		if i == len(items)-1 {
			files = max(1, count-int64(len(items))+1) // those behind it are like it
		}
		x.item(it, placed[it.Name], files)
	}
	return nil
}

// placed is where files are, as far as that matters for them.
func (x *explainer) placed(ctx context.Context, items []transfer.Item) (map[string][]catalog.Replica, error) {
	var names []string
	for _, it := range items {
		if it.State == transfer.Queued || it.State == transfer.NoSource {
			names = append(names, it.Name)
		}
	}
	all := map[string][]catalog.Replica{}
	for part := range slices.Chunk(names, looked) {
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
	switch it.State {
	case transfer.Leased:
		x.leased(it, files)
	case transfer.NoSource:
		x.noSource(it, replicas, files)
	case transfer.Queued:
		x.queued(it, replicas, files)
	case transfer.FileFailed:
		x.add("failed "+it.Reason, it.Name, files, "It failed: %s.", it.Reason)
	default:
		x.add(string(it.State), it.Name, files, "It is %s%s.", it.State, because(it.Reason))
	}
}

// leased is a file that somebody moves.
func (x *explainer) leased(it transfer.Item, files int64) {
	h := &x.c.registry
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.leases[it.ID]
	if l == nil {
		x.add("leased", it.Name, files, "It is being copied from %s.", it.Source)
		return
	}
	who := "it is copied without an agent"
	if l.mover != "" {
		who = fmt.Sprintf("the agent of %s has it", l.mover)
	}
	way := fmt.Sprintf("from %s to %s (%s)", l.Source.Site, l.Dest.Site, l.Mode)
	silent := x.now.Sub(l.heard)
	switch {
	case l.cancelled:
		x.add("breaking", it.Name, files, "Its request was cancelled: the copy %s is being broken off.", way)
	case silent > silence && l.mover != "":
		x.add("silent "+l.mover, it.Name, files, "%s and has not reported for %s: at %s the copy is given up, and its destination is asked for the file.",
			say.Capital(who), unit.Seconds(silent.Seconds()), clockTime(l.heard.Add(x.c.lease())))
	case l.stage == "":
		x.add("next "+l.mover+way, it.Name, files, "%s and begins it as soon as a slot is free, %s.", say.Capital(who), way)
	case l.stage == transfer.Moving && x.one:
		x.add(fmt.Sprint("moving", it.ID), it.Name, 1, "%s: %s of %s moved %s%s.", say.Capital(who), unit.Bytes(float64(l.moved)), unit.Bytes(float64(l.Size)), way, rate(l, x.now))
	default:
		x.add(string(l.stage)+l.mover+way, it.Name, files, "%s and is %s, %s.", say.Capital(who), l.stage, way)
	}
}

func rate(l *activeLease, now time.Time) string {
	s := now.Sub(l.began).Seconds()
	if l.began.IsZero() || s < 1 {
		return ""
	}
	return ", at " + unit.Bits(float64(l.moved)/s)
}

// noSource is a file that can come from nowhere.
func (x *explainer) noSource(it transfer.Item, replicas []catalog.Replica, files int64) {
	if len(replicas) == 0 {
		x.add("nowhere", it.Name, files, "No site has it.")
		return
	}
	text := x.sources(replicas)
	if text == "" { // what has changed since the queue looked
		x.c.registry.mu.Lock()
		defer x.c.registry.mu.Unlock()
		if to := x.c.registry.sites[x.q.To]; !to.Up {
			x.add("dest", it.Name, files, "Its destination %s is down: %s.", x.q.To, orElse(to.Problem, "it was never there since the coordinator began"))
		} else {
			x.add("back", it.Name, files, "A site that has it is back: it is looked at again in a moment.")
		}
		return
	}
	x.add("none "+text, it.Name, files, "No site that has it can be used: %s.", text)
}

// sources says of each replica why it is of no use, "" if one is.
func (x *explainer) sources(replicas []catalog.Replica) (text string) {
	h := &x.c.registry
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range replicas {
		s, known := h.sites[r.Site]
		why := ""
		switch {
		case !known:
			why = "is not known any more"
		case len(x.q.From) > 0 && !slices.Contains(x.q.From, r.Site):
			why = "is not among the sources that the request allows"
		case r.Bad != "":
			why = "has a bad copy: " + r.Bad
		case !s.Up:
			why = "is down: " + orElse(s.Problem, "it was never there since the coordinator began")
		default:
			return ""
		}
		if text != "" {
			text += "; "
		}
		text += r.Site + " " + why
	}
	return text
}

// queued is a file that waits.
func (x *explainer) queued(it transfer.Item, replicas []catalog.Replica, files int64) {
	if it.NotBefore.After(x.now) {
		again := "It waits"
		if it.Tries > 0 {
			again = fmt.Sprintf("It was tried %s", say.Times(int64(it.Tries)))
		}
		x.add("later "+it.Reason, it.Name, files, "%s, and is tried again in %s%s.", again, unit.Seconds(it.NotBefore.Sub(x.now).Seconds()), colon(it.Reason))
		return
	}
	x.c.registry.mu.Lock()
	key, text := x.waits(it, replicas)
	x.c.registry.mu.Unlock()
	x.add(key, it.Name, files, "%s", text)
}

func colon(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// waits says why a file that could go now is not being copied. The registry is locked.
func (x *explainer) waits(it transfer.Item, replicas []catalog.Replica) (key, text string) {
	h := &x.c.registry
	to := h.sites[x.q.To]
	switch {
	case !to.Up:
		return "dest", fmt.Sprintf("Its destination %s is down: %s.", x.q.To, orElse(to.Problem, "it was never there since the coordinator began"))
	case to.Free >= 0 && to.Free < it.Size:
		return "space", fmt.Sprintf("%s has %s free, and it has %s.", x.q.To, unit.Bytes(float64(to.Free)), unit.Bytes(float64(it.Size)))
	}
	replicas = slices.DeleteFunc(slices.Clone(replicas), func(r catalog.Replica) bool {
		return r.Bad != "" || r.Site == x.q.To || !h.sites[r.Site].Up || len(x.q.From) > 0 && !slices.Contains(x.q.From, r.Site)
	})
	w := x.c.ways(x.q.To, queue.Candidate{Item: it, Dest: x.q.To, Want: x.q.Mode, Replicas: replicas})
	if len(w.sources) == 0 {
		text = "no source is there"
		for i, s := range w.none {
			if i == 0 {
				text = w.why[s]
			} else if w.why[s] != text {
				text += "; " + w.why[s]
			}
		}
		return "ways " + text, fmt.Sprintf("Nobody can move it now: %s.", text)
	}
	most := map[string]int{}
	for _, s := range h.sites {
		most[s.Name] = s.Max
	}
	ch := h.net.Consider(schedule.File{Bytes: it.Size, Dest: x.q.To, Sources: w.sources, Max: most}, x.now)
	if ch.Source == "" {
		return "full " + ch.Why, say.Capital(ch.Why) + "."
	}
	return "turn", fmt.Sprintf("It waits for its turn: %s.", ch.Why)
}
