package client

import (
	"context"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/pause"
	"weir/transfer"
	"weir/transfer/catalog"
)

const (
	pageSize  = 1000      // rows that are requested at a time
	mostTries = 1_000_000 // that History returns at most
	scanEvery = 50 * time.Millisecond
)

// DatasetsBelow returns all datasets whose names begin with prefix, by name.
func (c *Client) DatasetsBelow(ctx context.Context, prefix string) (all []catalog.Dataset, err error) {
	_, last := utf8.DecodeLastRuneInString(prefix)
	for after := prefix[:len(prefix)-last]; ; { // such names sort after the prefix without its last character
		page, err := c.Datasets(ctx, after, pageSize)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			if strings.HasPrefix(d.Name, prefix) {
				all = append(all, d)
			} else if d.Name > prefix {
				return all, nil
			}
		}
		if len(page) < pageSize {
			return all, nil
		}
		after = page[len(page)-1].Name
	}
}

// EachFile calls f with the files of a dataset, a page at a time, until f fails.
func (c *Client) EachFile(ctx context.Context, dataset string, f func([]transfer.FileReplicas) error) error {
	for after := ""; ; {
		page, err := c.Files(ctx, dataset, after, pageSize)
		if err == nil {
			err = f(page)
		}
		if err != nil || len(page) < pageSize {
			return err
		}
		after = page[len(page)-1].Name
	}
}

// ItemsIn returns up to n files of a request in the given states: all files in the first state,
// then the files in the next state.
func (c *Client) ItemsIn(ctx context.Context, id int64, states []transfer.State, n int) (all []transfer.Item, err error) {
	if n <= pageSize && len(states) > 1 {
		return c.First(ctx, id, states, n)
	}
	for _, state := range states {
		for after := int64(0); len(all) < n; {
			want := min(n-len(all), pageSize)
			page, err := c.Items(ctx, id, state, after, want)
			if err != nil {
				return nil, err
			}
			all = append(all, page...)
			if len(page) < want {
				break
			}
			after = page[want-1].ID
		}
	}
	return all, nil
}

// ItemsOf returns the files of attempts at a request; the attempts are in the order of their files.
// The result may contain other files.
func (c *Client) ItemsOf(ctx context.Context, id int64, attempts []transfer.Attempt) (all []transfer.Item, err error) {
	known := int64(0)
	for i, a := range attempts {
		if a.Item <= known {
			continue
		}
		page, err := c.Items(ctx, id, "", a.Item-1, min(len(attempts)-i, pageSize))
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		known = a.Item // it may have been removed
		if len(page) > 0 {
			known = page[len(page)-1].ID
		}
	}
	return all, nil
}

// History returns the recorded attempts of all requests, the oldest first, up to a
// million.
func (c *Client) History(ctx context.Context) (all []transfer.PastAttempt, err error) {
	for after := int64(0); len(all) < mostTries; {
		page, next, err := c.Tries(ctx, after, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == 0 {
			break
		}
		after = next
	}
	return all, nil
}

// AddEntries adds files to the dataset and site of to, in batches, until entries ends or fails. It
// calls update with the number of files that were added, and their bytes.
func (c *Client) AddEntries(ctx context.Context, to transfer.NewFiles, entries iter.Seq2[catalog.Entry, error],
	update func(files, bytes int64)) error {
	var files, bytes int64
	send := func() error {
		if len(to.Files) == 0 {
			return nil
		}
		_, err := Retry(ctx, true, func() (catalog.Dataset, error) { return c.AddFiles(ctx, to) })
		if err != nil {
			return err
		}
		for _, f := range to.Files {
			files, bytes = files+1, bytes+f.Size
		}
		to.Files = nil
		update(files, bytes)
		return nil
	}
	for e, err := range entries {
		if err != nil {
			return err
		}
		to.Files = append(to.Files, transfer.NewFile{File: e.File, Path: e.Path})
		if len(to.Files) == transfer.MaxNewFiles {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// FollowScan starts a scan by the agent of a site, waits until it has ended, and calls update with
// each state on the way.
func (c *Client) FollowScan(ctx context.Context, s transfer.NewScan, update func(transfer.ScanState)) (transfer.ScanState, error) {
	state, err := c.Scan(ctx, s)
	for err == nil && !state.Done {
		if !pause.For(ctx, scanEvery) {
			return state, ctx.Err()
		}
		state, err = Retry(ctx, true, func() (transfer.ScanState, error) { return c.ScanState(ctx, state.ID) })
		update(state)
	}
	return state, err
}
