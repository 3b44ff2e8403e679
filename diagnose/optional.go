package diagnose

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"weir/storage"
)

// kept reads fresh payload in one stream into a file of the local folder.
func (d *diagnosis) kept(ctx context.Context) (string, error) {
	ops := d.fresh(1)
	to, err := os.MkdirTemp(d.To, "weir-diagnose-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(to) }() // it was made here
	ops[0].Dest, ops[0].Ranges = filepath.Join(to, "payload"), nil
	f, err := d.run(ctx, ops, nil)
	d.seen.Host.Full = errors.Is(err, storage.ErrScratch)
	if err != nil {
		return "", err
	}
	d.seen.Kept = &f
	return describe(&f), nil
}

// reference reads a file of a service that is known to be fast.
func (d *diagnosis) reference(ctx context.Context) (string, error) {
	other := &diagnosis{Options: d.Options, watch: d.watch}
	other.URL, other.Write = d.Refer, false
	base := other.base()
	s, err := d.Driver.Open(ctx, storage.Target{URL: &base, Cred: d.Cred, Reach: newRoute(&base).reach})
	if err != nil {
		return "", err
	}
	defer s.Close()
	other.service = s
	op := storage.Op{Kind: storage.Read, Path: other.file, Size: -1, Ranges: []storage.Range{{Length: d.limit()}}}
	f, err := other.run(ctx, []storage.Op{op}, nil)
	if err != nil {
		return "", err
	}
	d.seen.Reference = f.Rate
	return describe(&f), nil
}
