package sites

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/loadtest/challenge/inject"
	"weir/storage"
)

// Verify compares size and checksum of a copy of f with those of f. verified is false without an
// error if the sizes are equal, but the site reports no adler32 checksum. An error wraps
// storage.ErrSize or storage.ErrChecksum if the copy differs.
func (s *Sites) Verify(ctx context.Context, site, path string, f inject.File) (verified bool, err error) {
	at, err := s.place(site)
	if err != nil {
		return false, err
	}
	f.Path = path
	return s.verify(ctx, at, f)
}

// verify compares the file at f.Path with f.
func (s *Sites) verify(ctx context.Context, at *place, f inject.File) (verified bool, err error) {
	res, err := at.store.ask(ctx, storage.Op{Kind: storage.Stat, Path: f.Path, Timeout: shortTime}, s.attempts)
	if err == nil {
		err = storage.CheckSize(f.Size, res.Size)
	}
	if err != nil {
		return false, err
	}
	if f.Size == 0 { // XRootD reports no checksum
		return true, nil
	}
	sum, err := s.checksum(ctx, at, f)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return false, nil
	case err != nil:
		return false, err
	case sum != f.Sum:
		return false, fmt.Errorf("%w: %s has %s, its source has %s", storage.ErrChecksum, f.Path, sum, f.Sum)
	}
	return true, nil
}

// checksum requests the checksum of a file, by root if the site supports it only there.
func (s *Sites) checksum(ctx context.Context, at *place, f inject.File) (sum string, err error) {
	op := storage.Op{Kind: storage.Checksum, Path: f.Path, Sum: "adler32", Size: f.Size, Timeout: time.Duration(s.c.Timeout)}
	for _, store := range []*store{at.store, at.root} {
		if store == nil {
			break
		}
		err = s.sums.Ask(ctx, store.server, f.Size, func(ctx context.Context) error {
			res, err := store.ask(ctx, op, s.attempts)
			sum = res.Sum
			return err
		})
		if !errors.Is(err, errors.ErrUnsupported) {
			break
		}
	}
	return sum, err
}
