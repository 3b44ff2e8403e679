package text

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"weir/transfer"
	"weir/transfer/client"
)

// Fetch requests a request and at most so many of its attempts, or of its files in a state; ""
// selects files that are not at the destination yet.
func Fetch(ctx context.Context, co *client.Client, id int64, attempts bool, state transfer.State,
	most int) (out Shown, err error) {
	if out.Request, err = co.Request(ctx, id); err != nil {
		return out, err
	}
	if out.WithAttempts = attempts; attempts {
		if out.Attempts, err = co.Attempts(ctx, id, 0, most); err == nil {
			out.Items, err = co.ItemsOf(ctx, id, out.Attempts)
		}
		return out, err
	}
	states := Unfinished()
	if state != "" {
		states = []transfer.State{state}
	}
	out.Items, err = co.ItemsIn(ctx, id, states, most)
	return out, err
}

// ManifestJSON prints a manifest as JSON while it is read, so that it is never in memory
// completely. After a lost connection it is not repeated, because a part of it is printed already.
func ManifestJSON(ctx context.Context, co *client.Client, w io.Writer, id int64, reached bool) (transfer.Request, error) {
	out := bufio.NewWriter(w)
	m, err := client.Retry(ctx, reached, func() (transfer.Manifest, error) {
		m, err := co.WriteManifest(ctx, id, out, func(transfer.Item) error { return nil })
		if errors.Is(err, client.ErrCut) {
			err = fmt.Errorf("the printed manifest is incomplete: %s: print it again with: weir transfer manifest %d --json", err.Error(), id)
		}
		return m, err
	})
	return m.Request, errors.Join(err, out.Flush())
}

// Manifest prints the files of a request or, if there are many, only the files that did not arrive,
// and the totals.
func Manifest(ctx context.Context, co *client.Client, w io.Writer, id int64, all bool) (transfer.Request, error) {
	const rowsAtOnce = 1000 // have common columns
	var short Shortlist
	var rows []transfer.Item
	m, err := co.EachItem(ctx, id, func(i transfer.Item) error {
		if !all {
			return short.Add(i)
		}
		if rows = append(rows, i); len(rows) < rowsAtOnce {
			return nil
		}
		err := Items(w, rows)
		rows = rows[:0]
		return err
	})
	if err == nil {
		err = Items(w, rows)
	}
	if err == nil {
		err = short.Print(w, id)
	}
	if err != nil {
		return m.Request, err
	}
	return m.Request, Totals(w, &m)
}

// Result prints the result of a request that has ended: its files or, if there are many, only the
// files that did not arrive, and the totals; or its manifest as JSON. With a path it writes the
// manifest there as well. Only the listed files are kept in memory.
func Result(ctx context.Context, co *client.Client, out io.Writer, r transfer.Request, path string, asJSON bool) (err error) {
	var short Shortlist
	anew := func() func(transfer.Item) error {
		short = Shortlist{}
		return short.Add
	}
	var m transfer.Manifest
	switch {
	case path != "":
		if m, err = co.SaveManifest(ctx, path, r.ID, anew); err != nil {
			err = fmt.Errorf("--manifest: %w", err)
		}
	case !asJSON:
		m, err = client.Retry(ctx, true, func() (transfer.Manifest, error) { return co.EachItem(ctx, r.ID, anew()) })
	}
	if err == nil && asJSON {
		_, err = ManifestJSON(ctx, co, out, r.ID, true)
		return err
	}
	if err == nil {
		err = short.Print(out, r.ID)
	}
	if err != nil {
		return err
	}
	m.Request = r
	return Totals(out, &m)
}
