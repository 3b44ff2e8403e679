package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weir/internal/content"
	"weir/internal/pause"
	"weir/internal/say"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// Files are made, checked and removed by so many clients at once, each of whose operations, but for
// removals, may take so long. Clients that the service instructs to wait, as a redirector does for
// each new file, cause no load during that time: for each of them another client starts, up to the
// second number.
const (
	prepareClients = 16
	patientClients = 256
	prepareTimeout = 5 * time.Minute
)

// Advance receives the progress of a preparation; total is 0 while it is not known. It is called by
// many goroutines at once.
type Advance func(what string, done, total int)

// Prepare finds or makes the plan's file set, with the sizes that the work needs. Files and folders
// that it makes go below folder and are written to the manifest first; the size of each made file
// is requested from the service, and the first few are read back and checked. listed is the content
// of the plan's list file; it is ignored for other sets.
func Prepare(ctx context.Context, c Config, listed []workload.File, adv Advance) ([]workload.File, error) {
	p := &preparer{Config: c, advance: adv}
	if err := p.folders(ctx); err != nil {
		return nil, err
	}
	files, err := listed, error(nil)
	switch f := c.Plan.Files; {
	case f.Make != nil:
		files, err = p.make(ctx, *f.Make)
	case f.Listing:
		files, err = p.list(ctx)
		files = belowOrigin(files)
	}
	if err == nil && c.Plan.Files.Make == nil {
		files, err = c.Plan.Files.Select(files, c.Plan.Seed)
	}
	if err == nil {
		files, err = p.sizes(ctx, p.atOrigin(files))
	}
	for _, w := range c.Plan.Works() {
		if err == nil {
			err = workload.Enough(w, files)
		}
		if err == nil {
			err = p.probe(ctx, w, files)
		}
		if err == nil && w.Kind == workload.CopyWork {
			err = p.tryCopy(ctx, files)
		}
	}
	if err = errors.Join(err, p.warnOfRepeats(), p.warnOfEncoding()); err != nil {
		return nil, err
	}
	return files, nil
}

type preparer struct {
	Config
	advance         Advance
	done            atomic.Int64
	repeats         atomic.Int64
	answered, shown atomic.Bool  // the target has responded; the wait for it is shown
	fault           atomic.Value // the last error after which an operation was repeated
	encoding        atomic.Value // the last unrequested content encoding in responses with sizes of files
}

// ask does op. It repeats op if the connection broke, the service was busy or the client's program
// crashed. The file that such a write has left is removed first: some services do not replace
// files.
func (p *preparer) ask(ctx context.Context, s storage.Client, op *storage.Op) (storage.Result, error) {
	op.Timeout = prepareTimeout
	return repeated(ctx, func(before error) (storage.Result, error) {
		if before != nil {
			p.repeats.Add(1)
			p.fault.Store(before.Error())
			if op.Kind == storage.Write {
				_, _ = s.Do(ctx, &storage.Op{Kind: storage.Remove, Path: op.Path, Timeout: prepareTimeout},
					storage.NoProgress{}) // often there is nothing
			}
		}
		return p.do(ctx, s, op)
	}, func(_ int, class storage.Class, err error) bool {
		return class == storage.Reset || class == storage.Busy || errors.Is(err, storage.ErrCrashed)
	})
}

// repeated calls do, and three times more, after 0, 1 and 2 s, while passing reports that the error
// of the attempt with that number (from 0) may pass. do receives the error of the previous attempt.
func repeated(ctx context.Context, do func(before error) (storage.Result, error),
	passing func(attempt int, class storage.Class, err error) bool) (res storage.Result, err error) {
	for attempt := 0; ; attempt++ {
		res, err = do(err)
		if attempt == 3 || !passing(attempt, storage.Classify(err), err) || !pause.For(ctx, time.Duration(attempt)*time.Second) {
			return res, err
		}
	}
}

// warn writes a warning, unless there is no sink.
func (p *preparer) warn(format string, args ...any) error {
	if p.Sink == nil {
		return nil
	}
	return p.Sink.Event(measure.Event{Time: time.Now().UTC(), Kind: measure.EventWarning, Text: fmt.Sprintf(format, args...)})
}

// probe returns an error if the service does not support a kind of operation of w. Other failures are left to the load.
func (p *preparer) probe(ctx context.Context, w workload.Work, files []workload.File) error {
	s := p.Service.Client()
	defer func() { _ = s.Close() }() // its operations have ended
	probes := workload.Probes(w, files)
	for kind := range storage.Kinds {
		var err error
		ops := probes[kind]
		for i := range ops {
			if _, err = p.ask(ctx, s, &ops[i]); !errors.Is(err, errors.ErrUnsupported) {
				err = nil
				break
			}
		}
		if err != nil {
			return fmt.Errorf("the service cannot do %s: leave it out: %w", kind, err)
		}
	}
	return ctx.Err()
}

// warnOfRepeats warns that the service failed, though the load has not begun.
func (p *preparer) warnOfRepeats() error {
	n := int(p.repeats.Load())
	if n == 0 {
		return nil
	}
	return p.warn("%s of the preparation failed and %s repeated: %s", say.Plural(n, "operation"), say.Either(n, "was", "were"), p.fault.Load())
}

// warnOfEncoding warns of sizes that may not be the sizes of the files.
func (p *preparer) warnOfEncoding() error {
	encoding := p.encoding.Load()
	if encoding == nil {
		return nil
	}
	return p.warn("sizes of files come with Content-Encoding %q, which was not requested: they may be those of compressed content", encoding)
}

// folders makes the run's folder and the homes of clients that write, and tries whether the service takes files.
func (p *preparer) folders(ctx context.Context) error {
	writes := p.Plan.Writes()
	if !writes && p.Plan.Files.Make == nil {
		return nil
	}
	if err := p.contact(ctx); err != nil {
		return err
	}
	s := p.Service.Client()
	err := p.mkdir(ctx, s, p.Folder)
	if err == nil && p.Plan.Origin != nil && p.Plan.Files.Make != nil {
		err = p.mkdir(ctx, s, p.source())
	}
	if err := errors.Join(err, s.Close()); err != nil || !writes {
		return err
	}
	tries := 0 // one, unless files are made there before the load
	if (p.Plan.Files.Make == nil || p.Plan.Origin != nil) && slices.ContainsFunc(p.Plan.Works(), workload.WritesFiles) {
		tries = 1
	}
	return p.each(ctx, tries+p.Plan.MostClients(), "folders made", func(ctx context.Context, s storage.Client, i int) error {
		if i < tries {
			return p.tryWrites(ctx, s)
		}
		return p.mkdir(ctx, s, workload.Home(p.Folder, p.Plan.First+i-tries))
	})
}

func (p *preparer) mkdir(ctx context.Context, s storage.Client, path string) error {
	if err := p.Manifest.Created(path+"/", 0, 0); err != nil {
		return err
	}
	_, err := p.ask(ctx, s, &storage.Op{Kind: storage.Mkdir, Path: path})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // then writes make the folders, or report the error
	}
	if wasNotMade(err) {
		return errors.Join(err, p.Manifest.Removed(path+"/"))
	}
	return err
}

// The service must refuse so many files of so many bytes before a run that writes ends before its load.
const (
	triedWrites = 4
	triedSize   = 1 << 10
)

// tryWrites writes a small file and removes it. It returns an error if the service refuses this, and each repetition
// under another name. Other failures are left to the load.
func (p *preparer) tryWrites(ctx context.Context, s storage.Client) (err error) {
	ctx, cancel := context.WithTimeout(ctx, contactTimeout)
	defer cancel()
	for i := range triedWrites {
		path := fmt.Sprintf("%s/try%d.dat", p.Folder, i)
		op := storage.Op{Kind: storage.Write, Path: path, Size: triedSize, Seed: content.Seed(p.Plan.Seed, path)}
		if err := p.Manifest.Created(path, op.Size, op.Seed); err != nil {
			return err
		}
		_, err = p.ask(ctx, s, &op)
		gone := wasNotMade(err)
		if err == nil {
			_, removed := p.ask(ctx, s, &storage.Op{Kind: storage.Remove, Path: path})
			gone = removed == nil || errors.Is(removed, fs.ErrNotExist) // otherwise it is removed with all others
		}
		if gone {
			if err := p.Manifest.Removed(path); err != nil {
				return err
			}
		}
		if !refusesWrite(err) {
			return nil
		}
	}
	return err
}

// refusesWrite reports whether err, with which a write failed, is a refusal that will not pass.
func refusesWrite(err error) bool {
	switch storage.Classify(err) {
	case storage.Denied, storage.NotFound:
		return true
	case storage.Other:
		return !errors.Is(err, fs.ErrExist)
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// wasNotMade reports whether the file or folder whose creation failed with err cannot be on the service.
func wasNotMade(err error) bool {
	switch storage.Classify(err) {
	case storage.Refused, storage.Denied, storage.NotFound:
		return true
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted || errors.Is(err, storage.ErrLogin) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS)
}

// each runs do for 0 <= i < n, a few at a time, and stops at the first error.
func (p *preparer) each(ctx context.Context, n int, what string, do func(context.Context, storage.Client, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, working atomic.Int64
	var wg sync.WaitGroup
	p.done.Store(0)
	var work func()
	work = func() {
		s := &patient{Client: p.Service.Client()}
		defer func() { _ = s.Close() }() // its operations have ended
		for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
			s.waited = false
			if err := do(ctx, s, int(i)); err != nil {
				cancel(err)
				return
			}
			if s.waited && working.Add(1) <= int64(min(patientClients, n)) {
				wg.Go(work)
			}
			if p.advance != nil {
				p.advance(what, int(p.done.Add(1)), n)
			}
		}
	}
	working.Store(int64(min(prepareClients, n)))
	for range working.Load() {
		wg.Go(work)
	}
	wg.Wait()
	return context.Cause(ctx)
}

// patient is a client that records that the service instructed it to wait.
type patient struct {
	storage.Client
	waited bool
}

func (c *patient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	res, err := c.Client.Do(ctx, op, p)
	c.waited = c.waited || res.Waits > 0
	return res, err
}

func (p *preparer) make(ctx context.Context, m scenario.Make) ([]workload.File, error) {
	draw, err := m.Size.Sampler()
	if err != nil {
		return nil, fmt.Errorf("files.make.size: %w", err)
	}
	r := rand.New(rand.NewPCG(p.Plan.Seed, 0x66696c65)) // not a client's stream
	files := make([]workload.File, m.Count)
	for i := range files {
		path := fmt.Sprintf("%s/f%06d.dat", p.source(), i)
		files[i] = workload.File{Path: path, Size: draw(r), Seed: content.Seed(p.Plan.Seed, path), Made: true}
	}
	return files, p.each(ctx, len(files), "files made", func(ctx context.Context, s storage.Client, i int) error {
		return p.makeOne(ctx, s, &files[i], i < prepareClients)
	})
}

// makeOne writes one file and requests its size; if look is true, it also reads the file back and
// compares checksums.
func (p *preparer) makeOne(ctx context.Context, s storage.Client, f *workload.File, look bool) error {
	if err := p.Manifest.Created(f.Path, f.Size, f.Seed); err != nil {
		return err
	}
	op := storage.Op{Kind: storage.Write, Path: f.Path, Size: f.Size, Seed: f.Seed}
	if _, err := p.ask(ctx, s, &op); storage.Classify(err) == storage.Denied || errors.Is(err, storage.ErrLogin) {
		return errors.Join(err, p.Manifest.Removed(f.Path))
	} else if err != nil {
		return err
	}
	res, err := p.ask(ctx, s, &storage.Op{Kind: storage.Stat, Path: f.Path})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && res.Size >= 0 && res.Size != f.Size {
		err = fmt.Errorf("%s: the service says %d bytes, written were %d: %w", f.Path, res.Size, f.Size, storage.ErrShort)
	}
	if err != nil || !look || p.Plan.Work.Sum == "" {
		return err
	}
	op = storage.Op{Kind: storage.Read, Path: f.Path, Size: f.Size, Sum: p.Plan.Work.Sum}
	if res, err = p.ask(ctx, s, &op); err != nil {
		return err
	}
	if want, ok := workload.Expected(*f, &op, op.Sum); ok && res.Sum != "" && want != res.Sum {
		return wrong(&op, want, res.Sum)
	}
	return nil
}
