// Package text prints requests, files, datasets, sites and tokens of a coordinator, as tables and
// sentences for terminals.
package text

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
	"weir/transfer/schedule"
)

// MaxRows is the number of files that are listed unless all are requested.
const MaxRows = 20

func bytes(n int64) string { return unit.Bytes(float64(n)) }

func files(n int64) string { return say.Plural(int(n), "file") }

func orDash(text string) string { return cmp.Or(text, "-") }

func localTime(t time.Time) string { return t.Local().Format(time.DateTime) }

func localMinute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// Statuses returns all statuses of requests.
func Statuses() []transfer.Status {
	return []transfer.Status{
		transfer.Awaiting, transfer.Resolving, transfer.Running, transfer.Completed, transfer.Partial,
		transfer.Failed, transfer.Cancelled, transfer.Rejected, transfer.Expired,
	}
}

// Unfinished returns the states of files that are not at the destination, in the order in
// which they are listed.
func Unfinished() []transfer.State {
	return []transfer.State{transfer.FileFailed, transfer.Leased, transfer.NoSource, transfer.Queued, transfer.FileCancelled}
}

// States returns all states of files.
func States() []transfer.State { return append(Unfinished(), transfer.Done, transfer.Skipped) }

// A Shown is the output of weir transfer show for a request.
type Shown struct {
	Request  transfer.Request   `json:"request"`
	Items    []transfer.Item    `json:"items,omitempty"`
	Attempts []transfer.Attempt `json:"attempts,omitempty"`

	WithAttempts bool `json:"-"`
}

// Print prints the request with its files, or with its attempts.
func (r Shown) Print(w io.Writer) error {
	if err := Request(w, &r.Request); err != nil {
		return err
	}
	if !r.WithAttempts {
		return Items(w, r.Items)
	}
	names := map[int64]string{}
	for _, i := range r.Items {
		names[i.ID] = i.Name
	}
	t := say.NewTable(w, "BEGIN", "WAY", "MODE", "MOVED", "RESUMED", "TOOK", "SPEED", "FILE: OUTCOME")
	for _, a := range r.Attempts {
		took := a.End.Sub(a.Begin).Seconds()
		speed := "-"
		if took > 0 && a.Moved > 0 {
			speed = unit.Bytes(float64(a.Moved)/took) + "/s"
		}
		name := cmp.Or(names[a.Item], fmt.Sprintf("number %d", a.Item))
		t.Row(localTime(a.Begin), a.Source+" -> "+a.Dest, a.Mode, bytes(a.Moved), bytes(a.Resumed), unit.Seconds(took), speed, name+
			": "+outcome(&a))
	}
	return t.FlushOr("no attempt was made yet")
}

// outcome describes the end of an attempt. An attempt that was reported after its lease had expired
// does not count: the attempt that followed it counts.
func outcome(o *transfer.Attempt) string {
	switch {
	case o.Late && o.Fault == "":
		return "reported too late, another attempt counts"
	case o.Fault != "":
		return fmt.Sprintf("%s: %s", o.Fault, o.Reason)
	case o.Existed:
		return "existed already, verified"
	case o.Verified:
		return "done, verified"
	}
	return "done, not verified"
}

// Request prints all information about a request.
func Request(w io.Writer, r *transfer.Request) error {
	c := &r.Count
	all, size := requested(r)
	t := say.NewTable(w)
	t.Row("request", fmt.Sprintf("%d: %s to %s", r.ID, r.Dataset, r.To))
	t.Row("status", strings.TrimSuffix(string(r.Status)+": "+r.Reason, ": "))
	t.Row("files", fmt.Sprintf("%d of %d at %s, %s of %s", c.Done+c.Skipped, all, r.To, bytes(c.DoneBytes), bytes(size)))
	if c.Files > 0 {
		t.Row("", Counts(c))
	}
	if r.Rate > 0 {
		t.Row("speed", unit.Bytes(r.Rate)+"/s")
	}
	t.Row("attempts", c.Attempts)
	t.Row("made", localTime(r.Made)+" by "+r.By)
	if r.Decided != "" {
		t.Row("decided", "by "+r.Decided)
	}
	if !r.Ended.IsZero() {
		t.Row("ended", localTime(r.Ended))
	}
	if !r.Expires.IsZero() {
		t.Row("expires", localTime(r.Expires))
	}
	if len(r.From) > 0 {
		t.Row("from", strings.Join(r.From, ", "))
	}
	if r.Comment != "" {
		t.Row("comment", r.Comment)
	}
	return t.Flush()
}

// requested returns the size of a request: the requested size, until the coordinator has resolved
// all of its files.
func requested(r *transfer.Request) (files, bytes int64) {
	if r.Count.Files == 0 || r.Status == transfer.Resolving {
		return r.Asked.Files, r.Asked.Bytes
	}
	return r.Count.Files, r.Count.Bytes
}

type stateCount struct {
	n    int64
	what string
}

// Counts lists the number of files in each state.
func Counts(c *transfer.Counts) string {
	text := counts([]stateCount{{c.Done, "done"}, {c.Skipped, "existed already"}, {c.Leased, "moving"}, {c.Queued, "waiting"},
		{c.NoSource, "without a source"}, {c.Failed, "failed"}, {c.Cancelled, "cancelled"}})
	return cmp.Or(text, "none is known yet")
}

func counts(all []stateCount) string {
	var parts []string
	for _, s := range all {
		if s.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Requests prints a list of requests.
func Requests(w io.Writer, all []transfer.Request) error {
	t := say.NewTable(w, "REQUEST", "STATUS", "DATASET", "TO", "FILES", "SIZE", "AT THE SITE", "MADE", "BY")
	for _, r := range all {
		n, size := requested(&r)
		t.Row(r.ID, r.Status, r.Dataset, r.To, n, bytes(size), files(r.Count.Done+r.Count.Skipped), localTime(r.Made), r.By)
	}
	return t.FlushOr("no requests")
}

// Items prints files as a table.
func Items(w io.Writer, items []transfer.Item) error {
	if len(items) == 0 {
		return nil
	}
	t := say.NewTable(w, "STATE", "SIZE", "ADLER32", "FAILED ATTEMPTS", "FROM", "FILE")
	for _, i := range items {
		name := i.Name
		if i.Stage != "" && i.State == transfer.Leased {
			name += fmt.Sprintf(": %s, %s so far", i.Stage, bytes(i.Moved))
		}
		if i.Reason != "" && i.State != transfer.Done {
			name += ": " + i.Reason
		}
		if wait := time.Until(i.NotBefore); i.State == transfer.Queued && wait > 0 {
			name += fmt.Sprintf(" (again in %s)", unit.Seconds(wait.Round(time.Second).Seconds()))
		}
		t.Row(i.State, bytes(i.Size), orDash(i.Adler), i.Tries, orDash(i.Source), name)
	}
	return t.Flush()
}

// A Shortlist keeps the files of a stream that will be listed: the first files or, if there are
// more than MaxRows, the first files that did not arrive.
type Shortlist struct {
	first, missing []transfer.Item
	files, lost    int
}

// Add adds the next file of the stream.
func (l *Shortlist) Add(i transfer.Item) error {
	if l.files++; l.files <= MaxRows {
		l.first = append(l.first, i)
	}
	if i.State != transfer.Done && i.State != transfer.Skipped {
		if l.lost++; l.lost <= MaxRows {
			l.missing = append(l.missing, i)
		}
	}
	return nil
}

// Print prints the files, and the command that lists the other files.
func (l *Shortlist) Print(w io.Writer, request int64) error {
	shown, of := l.first, l.files
	if l.files > MaxRows {
		shown, of = l.missing, l.lost
	}
	err := Items(w, shown)
	if more := of - len(shown); more > 0 && err == nil {
		_, err = fmt.Fprintf(w, "and %d more: weir transfer manifest %d --all\n", more, request)
	}
	return err
}

// Totals prints the result of a request in a sentence, and the digest of its manifest.
func Totals(w io.Writer, m *transfer.Manifest) error {
	r, c := &m.Request, &m.Request.Count
	text := fmt.Sprintf("request %d is %s: %d of %s, %s, at %s", r.ID, r.Status, c.Done+c.Skipped, files(c.Files), bytes(c.DoneBytes),
		say.Plain(r.To))
	if c.Skipped > 0 {
		text += fmt.Sprintf(" (%d existed already)", c.Skipped)
	}
	if took := r.Ended.Sub(r.Began); !r.Began.IsZero() && !r.Ended.IsZero() && took > 0 {
		text += fmt.Sprintf(", in %s", unit.Seconds(took.Seconds()))
		if r.Rate > 0 {
			text += fmt.Sprintf(", %s/s", unit.Bytes(r.Rate))
		}
	}
	if r.Reason != "" {
		text += ": " + say.Plain(r.Reason)
	}
	if m.Digest != "" {
		text += "\nsha256 of the list: " + m.Digest
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// Explanation prints why files of a request do not move.
func Explanation(w io.Writer, e transfer.Explanation) error {
	text := fmt.Sprintf("request %d is %s", e.Request.ID, e.Request.Status)
	if e.Request.Count.Files > 0 {
		text += ": " + Counts(&e.Request.Count)
	}
	screen.Paragraph(w, "", "%s", text)
	for _, r := range e.Reasons {
		which := files(r.Files)
		if r.Files == 1 {
			which = cmp.Or(r.File, which)
		}
		screen.Paragraph(w, "  ", "%s: %s", which, r.Text)
	}
	if !e.Request.Status.Ended() {
		return nil
	}
	_, err := fmt.Fprintf(w, "It has ended: weir transfer manifest %d lists its files\n", e.Request.ID)
	return err
}

// Backtest prints the quality of predictors of the fastest source.
func Backtest(w io.Writer, v schedule.Verdict) error {
	if v.Used == 0 {
		_, err := fmt.Fprintf(w, "%s: none that moved bytes, so nothing can be predicted yet\n", say.Plural(v.Tries, "recorded attempt"))
		return err
	}
	_, _ = fmt.Fprintf(w, "%s, %d of them good copies that moved bytes; %s from two sources at about the same time\n",
		say.Plural(v.Tries, "recorded attempt"), v.Used, say.Plural(v.Pairs, "pair"))
	if v.Unsampled > 0 {
		_, _ = fmt.Fprintf(w, "the source's host was not monitored during %s: the regression predicts nothing for these\n",
			say.Plural(v.Unsampled, "copy"))
	}
	t := say.NewTable(w, "PREDICTOR", "COPIES", "PREDICTED/TOOK 10%", "50%", "90%", "MEDIAN ERROR", "FASTER SOURCE NAMED", "WHAT")
	for _, p := range v.Predictors {
		q := [3]string{"-", "-", "-"}
		for i := range min(len(p.Ratio), len(q)) {
			q[i] = unit.Significant(p.Ratio[i].Value)
		}
		faster, off := "-", "-"
		if v.Pairs > 0 {
			faster = fmt.Sprintf("%d of %d (%s, 95%%: %s to %s)", p.Right, v.Pairs, unit.Percent(p.Share), unit.Percent(p.Range.Low),
				unit.Percent(p.Range.High))
		}
		if p.Copies > 0 {
			off = "x " + unit.Significant(p.Error.Value)
		}
		t.Row(p.Name, p.Copies, q[0], q[1], q[2], off, faster, p.What)
	}
	return t.Flush()
}

// Datasets prints a list of datasets.
func Datasets(w io.Writer, all []catalog.Dataset) error {
	t := say.NewTable(w, "DATASET", "BLOCKS", "FILES", "SIZE", "WHERE")
	for _, d := range all {
		var sites []string
		for site, n := range d.At {
			if n < d.Files {
				site += fmt.Sprintf(" (%d of %d)", n, d.Files)
			}
			sites = append(sites, site)
		}
		slices.Sort(sites)
		t.Row(d.Name, d.Blocks, d.Files, bytes(d.Bytes), cmp.Or(strings.Join(sites, ", "), "nowhere"))
	}
	return t.FlushOr("no datasets: add one with `weir dataset add`")
}

// Files prints files of a dataset with their replicas.
func Files(w io.Writer, all []transfer.FileReplicas) error {
	t := say.NewTable(w)
	for _, f := range all {
		var sites []string
		for _, r := range f.Replicas {
			text := r.Site
			if r.Bad != "" {
				text += " (bad: " + r.Bad + ")"
			}
			sites = append(sites, text)
		}
		t.Row(bytes(f.Size), orDash(f.Adler), f.Block, strings.Join(sites, ", "), f.Name)
	}
	return t.Flush()
}

// Sites prints a list of sites.
func Sites(w io.Writer, sites []catalog.Site) error {
	t := say.NewTable(w, "SITE", "KIND", "STATE", "FREE", "SEEN", "ENDPOINT", "PROBLEM")
	for _, s := range sites {
		state, free, seen := "down", "not known", "never"
		if s.Up {
			state = "up"
		}
		if s.Free >= 0 {
			free = bytes(s.Free)
		}
		if !s.Seen.IsZero() {
			seen = unit.Seconds(max(time.Since(s.Seen).Round(time.Second), 0).Seconds()) + " ago"
		}
		t.Row(s.Name, s.Kind, state, free, seen, cmp.Or(s.URL, "none: it only connects out"), s.Problem)
	}
	return t.FlushOr("no sites: start an agent with `weir agent`, or add an endpoint with `weir site add`")
}

// A Site is a site with the links to and from it.
type Site struct {
	Site  catalog.Site    `json:"site"`
	Links []transfer.Link `json:"links"`
}

// Print prints the site and its links.
func (s Site) Print(w io.Writer) error {
	if err := Sites(w, []catalog.Site{s.Site}); err != nil || len(s.Links) == 0 {
		return err
	}
	_, _ = fmt.Fprintln(w) // Flush returns the error
	t := say.NewTable(w, "LINK", "MOVING", "AT ONCE", "SPEED", "SUCCESS", "WHY")
	for _, l := range s.Links {
		t.Row(l.Source+" -> "+l.Dest, l.Active, l.Limit, unit.Bytes(l.Rate)+"/s", unit.Percent(l.Success), l.Why)
	}
	return t.Flush()
}

// Invalidity returns the reason why a token is no longer valid, or "" if it is valid.
func Invalidity(t *transfer.Token) string {
	switch {
	case !t.Revoked.IsZero():
		return fmt.Sprintf("revoked by %s at %s", t.RevokedBy, localMinute(t.Revoked))
	case !time.Now().Before(t.Expires):
		return "expired at " + localMinute(t.Expires)
	}
	return ""
}

// Tokens prints a list of tokens.
func Tokens(w io.Writer, tokens []transfer.Token) error {
	t := say.NewTable(w, "ID", "FOR", "MAY", "MADE", "BY", "EXPIRES")
	for _, k := range tokens {
		t.Row(k.ID, k.Subject, transfer.RoleNames(k.Roles...), localMinute(k.Made), k.By, cmp.Or(Invalidity(&k), localMinute(k.Expires)))
	}
	return t.FlushOr("no tokens: make one with `weir coordinator token`")
}

// Notifications writes a table of notifications.
func Notifications(w io.Writer, all []transfer.Notification) error {
	t := say.NewTable(w, "REQUEST", "STATUS", "TARGET", "MADE", "ATTEMPTS", "STATE")
	for _, n := range all {
		state := "next attempt " + localMinute(n.Due)
		switch {
		case n.Delivered:
			state = "delivered " + localMinute(n.Ended)
		case !n.Ended.IsZero():
			state = "given up " + localMinute(n.Ended)
		}
		if n.Problem != "" {
			state += ": " + n.Problem
		}
		t.Row(fmt.Sprint(n.Request), string(n.Status), n.Target, localMinute(n.Made), fmt.Sprint(n.Tries), state)
	}
	return t.FlushOr("no notifications")
}

// NotifyResults writes the results of a test of notifications.
func NotifyResults(w io.Writer, all []transfer.NotifyResult) error {
	t := say.NewTable(w, "TARGET", "KIND", "TOOK", "RESULT")
	for _, r := range all {
		t.Row(r.Target, r.Kind, unit.Seconds(r.Seconds), cmp.Or(r.Problem, "delivered"))
	}
	return t.Flush()
}

// FindSite requests a site and the links to and from it. If the site does not exist, the error
// lists the existing sites.
func FindSite(ctx context.Context, co *client.Client, name string) (Site, error) {
	out := Site{Links: []transfer.Link{}}
	sites, err := co.Sites(ctx)
	if err != nil {
		return out, err
	}
	i := slices.IndexFunc(sites, func(s catalog.Site) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range sites {
			names = append(names, say.Plain(s.Name))
		}
		more := ""
		if n := len(names); n > 10 {
			names, more = names[:10], fmt.Sprintf(" and %d more", n-10)
		}
		if len(names) == 0 {
			names = []string{"none yet"}
		}
		return out, fmt.Errorf("there is no site %s; there are: %s%s", say.Plain(name), strings.Join(names, ", "), more)
	}
	out.Site = sites[i]
	links, err := co.Links(ctx)
	for _, l := range links {
		if l.Source == name || l.Dest == name {
			out.Links = append(out.Links, l)
		}
	}
	return out, err
}
