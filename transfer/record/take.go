package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
	"weir/transfer"
	"weir/transfer/client"
)

// A taken is the state of a step at the coordinator.
type taken struct {
	step       int
	name       string
	atOnce     int
	notes      []Note
	begin, end time.Time // from the first submission to the last end
	list       []results.Transfer
}

// take requests the attempts of a step's requests.
func take(ctx context.Context, c *client.Client, number int, s *Step) (*taken, error) {
	t := &taken{step: number, name: s.Name, atOnce: s.AtOnce, notes: s.Notes}
	for _, id := range s.Requests {
		if err := t.request(ctx, c, id); err != nil {
			return nil, fmt.Errorf("request %d: %w", id, err)
		}
	}
	if len(t.list) == 0 {
		return nil, fmt.Errorf("%s: nothing was tried, and no file was given up yet", s.Name)
	}
	slices.SortStableFunc(t.list, func(a, b results.Transfer) int { return cmp.Or(a.End.Compare(b.End), cmp.Compare(a.File, b.File)) })
	if t.atOnce == 0 {
		t.atOnce = t.most()
	}
	return t, nil
}

func (t *taken) request(ctx context.Context, c *client.Client, id int64) error {
	r, err := c.Request(ctx, id)
	if err != nil {
		return err
	}
	m, err := c.Manifest(ctx, id)
	if err != nil {
		return err
	}
	ended := r.Ended
	if !r.Status.Ended() {
		ended = time.Now()
	}
	t.span(r.Made, ended)
	items, last := map[int64]*transfer.Item{}, map[int64]int{}
	for i := range m.Items {
		items[m.Items[i].ID] = &m.Items[i]
	}
	err = c.EachAttempt(ctx, id, func(a transfer.Attempt) error {
		i := items[a.Item]
		if i == nil || a.End.IsZero() {
			return nil
		}
		one := attempt(t, &r, i, &a)
		t.span(one.Begin, one.End)
		t.list = append(t.list, one)
		if !a.Late {
			last[a.Item] = len(t.list)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range m.Items {
		at := last[i.ID]
		switch {
		case at > 0:
			t.list[at-1].Last = i.State.Final()
			if i.State == transfer.FileFailed && i.Reason != "" {
				t.list[at-1].Reason = i.Reason // the reason why no further attempt is made
			}
		case i.State.Final(): // it was at the destination, or no site had it
			end := i.Ended
			if end.IsZero() {
				end = ended
			}
			t.list = append(t.list, results.Transfer{
				Step: t.step, Case: t.name, Request: id, File: i.Name, Size: i.Size, Source: i.Source, Dest: r.To, End: end, Last: true,
				Done: i.State == transfer.Skipped || i.State == transfer.Done, Verified: i.State == transfer.Skipped, Class: class(i.Fault),
				Reason: i.Reason,
			})
		}
	}
	return nil
}

func (t *taken) span(begin, end time.Time) {
	if t.begin.IsZero() || begin.Before(t.begin) {
		t.begin = begin
	}
	if end.After(t.end) {
		t.end = end
	}
}

func attempt(t *taken, r *transfer.Request, i *transfer.Item, a *transfer.Attempt) results.Transfer {
	out := results.Transfer{
		Step: t.step, Case: t.name, Request: r.ID, File: i.Name, Size: max(i.Size, 0), Source: a.Source, Dest: a.Dest, Mode: string(a.Mode),
		Begin: a.Begin, End: a.End, Moved: max(a.Moved, 0), Resumed: max(a.Resumed, 0), Done: a.Fault == "", Verified: a.Verified,
		Class: class(a.Fault), Reason: a.Reason, CPU: max(a.CPU, 0),
	}
	if out.Begin.IsZero() || out.Begin.After(out.End) {
		out.Begin = out.End
	}
	return out
}

// class returns the class of package storage for a fault.
func class(f transfer.ErrorClass) storage.Class {
	switch f {
	case "":
		return storage.None
	case transfer.SourceBad:
		return storage.NotFound
	case transfer.Transient, transfer.Unreachable:
		return storage.Refused
	case transfer.Throttled:
		return storage.Busy
	case transfer.Denied:
		return storage.Denied
	case transfer.Checksum:
		return storage.Checksummed
	case transfer.LeaseLost:
		return storage.Reset
	case transfer.RequestCancelled, transfer.MoverStopped:
		return storage.Canceled
	case transfer.DestFull:
		return storage.ServerFailed
	case transfer.Permanent, transfer.Occupied, transfer.Unverified:
	}
	return storage.Other
}

// most returns the largest number of copies that ran at the same time.
func (t *taken) most() int {
	type change struct {
		at time.Time
		by int
	}
	var all []change
	for i := range t.list {
		if a := &t.list[i]; !a.Begin.IsZero() {
			all = append(all, change{a.Begin, 1}, change{a.End, -1})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	n, most := 0, 1
	for _, c := range all {
		n += c.by
		most = max(most, n)
	}
	return most
}

// failures returns the failed attempts, as events.
func (t *taken) failures() []measure.Event {
	var all []measure.Event
	for i := range t.list {
		a := &t.list[i]
		if a.Done || a.Class == storage.Canceled {
			continue
		}
		all = append(all, measure.Event{Time: a.End, Kind: measure.EventError, Step: t.step, Class: a.Class, On: a.Source,
			What: storage.Copy.String(), Text: a.File + ": " + a.Reason})
	}
	return all
}
