package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/content"
	"weir/internal/pause"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
	"weir/storage"
)

// verify checks the payload of a successful operation: at once if the content is known, otherwise
// by a later request for the service's checksum.
func (l *clientRunner) verify(c *client, op *storage.Op, res *storage.Result) error {
	switch {
	case (op.Kind == storage.Write || op.Kind == storage.Copy) && c.task.File != nil:
		l.checker.ask(question{op: *op, made: c.task.File.Made})
		return nil
	case res.Sum == "":
		l.rec.Checked(op.Kind, 0, 1, nil)
		return nil
	}
	if c.task.File != nil {
		if want, ok := l.expected(c.task.File, op); ok {
			if want != res.Sum {
				return l.differs(op, want, res.Sum)
			}
			c.meter.Verified()
			return nil
		}
	}
	if op.Kind == storage.Read && op.Ranges == nil {
		l.checker.ask(question{op: *op, got: res.Sum})
		return nil
	}
	l.rec.Checked(op.Kind, 0, 1, nil)
	return nil
}

// expected returns workload.Expected, which makes the content anew each time. The checksums of
// whole files are cached.
func (l *clientRunner) expected(f *workload.File, op *storage.Op) (string, bool) {
	whole := op.Ranges == nil
	if whole {
		if sum, ok := l.sums.Load(f); ok {
			return sum.(string), true
		}
	}
	sum, ok := workload.Expected(*f, op, l.Plan.Work.Sum)
	if ok && whole {
		l.sums.Store(f, sum)
	}
	return sum, ok
}

// unknowable reports whether the expected payload of c's task is unknown: then a checksum would be
// useless work, and the payload may be discarded like any other.
func (l *clientRunner) unknowable(c *client, op *storage.Op) bool {
	return op.Kind == storage.Read && l.checker.mute.Load() && (c.task.File == nil || !c.task.File.Made)
}

// differs returns the error for a checksum that differs from the expected checksum. A checksum that
// the service reported is requested again in a session of its own: XRootD before 5.5.4 may return
// another file's checksum on a connection that had other requests, which is no wrong payload.
func (l *clientRunner) differs(op *storage.Op, want, got string) error {
	if op.Kind == storage.Checksum {
		fresh := l.Service.Client()
		res, err := fresh.Do(l.soft, op, storage.NoProgress{})
		_ = fresh.Close() // its operation is counted already
		if err == nil && res.Sum == want {
			return &storage.OpError{Kind: op.Kind, URL: op.Path,
				Err: fmt.Errorf("%w: the service reported the checksum %s, and %s on a new connection: XRootD before 5.5.4 mixes up the answers "+
					"of one connection", storage.ErrProtocol, got, want)}
		}
	}
	return wrong(op, want, got)
}

func wrong(op *storage.Op, want, got string) error {
	return &storage.OpError{Kind: op.Kind, URL: op.Path, Err: fmt.Errorf("%w: %s, should be %s", storage.ErrChecksum, got, want)}
}

// A question is a payload to be compared with the checksum that the service reports.
type question struct {
	op  storage.Op
	got string // Read: the checksum of the payload that was read
	// Copy: the content is known; otherwise the checksum of the origin is the correct checksum
	made bool
}

// A doubt is a written file that the service reported as missing or incomplete. It is judged after
// a second: some services show a file a moment after they have acknowledged it.
type doubt struct {
	question
	due time.Time
}

const secondLook = time.Second

// Questions that may wait; if the service responds more slowly than they arrive, the others count
// as unverifiable.
const patience = 256

// A checker compares payloads with the service's own checksums, one at a time in a session of its
// own, beside the load: its requests must not change the measurement. If the service has no
// checksums, written files are read back.
type checker struct {
	rec       *measure.Recorder
	service   storage.Service
	alg       string
	questions chan question
	wg        sync.WaitGroup
	mute      atomic.Bool // the service has no checksums
	moves     bool        // clients remove or rename files that they have written
	remover   *remover    // of copies; nil: they stay
	doubts    []doubt     // at most patience of them, the oldest first
}

func startChecker(ctx context.Context, rec *measure.Recorder, s storage.Service, w workload.Work, r *remover) *checker {
	k := &checker{rec: rec, service: s, alg: w.Sum, questions: make(chan question, patience),
		moves: workload.Moves(w), remover: r}
	k.wg.Go(func() {
		client := s.Client()
		for q := range k.questions {
			k.answer(ctx, client, q)
			for len(k.doubts) > 0 && (len(k.doubts) >= patience || !time.Now().Before(k.doubts[0].due)) {
				k.settle(ctx)
			}
		}
		for len(k.doubts) > 0 {
			k.settle(ctx)
		}
		_ = client.Close() // its operations are counted already
	})
	return k
}

func (k *checker) ask(q question) {
	select {
	case k.questions <- q:
	default:
		k.rec.Checked(q.op.Kind, 0, 1, nil)
		k.release(q)
	}
}

// release lets the copy of q be removed.
func (k *checker) release(q question) {
	if q.op.Kind == storage.Copy {
		k.remover.remove(q.op.Path)
	}
}

// close checks the payloads in the queue, as long as the checker's context lasts; payloads that are
// left after its end cannot be verified.
func (k *checker) close() {
	close(k.questions)
	k.wg.Wait()
}

func (k *checker) answer(ctx context.Context, client storage.Client, q question) {
	want, got, err := k.compare(ctx, client, q)
	// A new connection helps if the checksum was another file's (see differs), and if XRootD before
	// 5.9.1 refused the request because the previous request on this connection was not done yet.
	if errors.Is(err, storage.ErrBusy) || err == nil && want != got {
		want, got, err = k.compareAfresh(ctx, q)
	}
	if k.missing(q, err) {
		k.doubts = append(k.doubts, doubt{q, time.Now().Add(secondLook)})
		return
	}
	k.judge(q, want, got, err)
}

func (k *checker) judge(q question, want, got string, err error) {
	defer k.release(q)
	switch {
	case k.moves && q.op.Kind == storage.Write && errors.Is(err, fs.ErrNotExist): // a client was faster: there is nothing to judge
	case err != nil:
		k.rec.Checked(q.op.Kind, 0, 1, nil)
	case want != got:
		k.rec.Checked(q.op.Kind, 0, 0, wrong(&q.op, want, got))
	default:
		k.rec.Checked(q.op.Kind, 1, 0, nil)
	}
}

// missing reports whether err means that a written file does not exist, or does not have its full
// length.
func (k *checker) missing(q question, err error) bool {
	if q.op.Kind != storage.Write && q.op.Kind != storage.Copy || k.moves {
		return false
	}
	switch storage.Classify(err) {
	case storage.NotFound, storage.Sized, storage.Short:
		return true
	}
	return false
}

// settle judges the oldest doubt, when it is due: a file that is still missing is lost.
func (k *checker) settle(ctx context.Context) {
	q := k.doubts[0]
	k.doubts = k.doubts[1:]
	pause.For(ctx, time.Until(q.due))
	want, got, err := k.compareAfresh(ctx, q.question)
	if k.missing(q.question, err) {
		k.rec.Checked(q.op.Kind, 0, 0, &storage.OpError{Kind: q.op.Kind, URL: q.op.Path,
			Err: fmt.Errorf("%w: the %v was acknowledged, and a second later: %w", storage.ErrChecksum, q.op.Kind, err)})
		k.release(q.question)
		return
	}
	k.judge(q.question, want, got, err)
}

// compareAfresh calls compare in a session of its own.
func (k *checker) compareAfresh(ctx context.Context, q question) (want, got string, err error) {
	fresh := k.service.Client()
	want, got, err = k.compare(ctx, fresh, q)
	_ = fresh.Close() // its operations are counted already
	return want, got, err
}

// compare returns the expected checksum of the payload and the actual checksum.
func (k *checker) compare(ctx context.Context, client storage.Client, q question) (want, got string, err error) {
	theirs, err := k.theirs(ctx, client, q)
	if err != nil {
		return "", "", err
	}
	if q.op.Kind == storage.Copy && !q.made {
		alg, _, _ := strings.Cut(theirs, ":")
		res, err := client.Do(ctx, &storage.Op{Kind: storage.Checksum, Path: q.op.Source, Size: -1, Sum: alg, Timeout: time.Minute},
			storage.NoProgress{})
		return res.Sum, theirs, err
	}
	if q.op.Kind == storage.Write || q.op.Kind == storage.Copy {
		alg, _, _ := strings.Cut(theirs, ":")
		want, err = content.Sum(alg, q.op.Seed, 0, q.op.Size)
		return want, theirs, err
	}
	return theirs, q.got, nil
}

// ours is the algorithm for written files that are read back: the service does not take part in it,
// so it is an algorithm for which processors have an instruction, at a tenth of the cost of
// adler32.
const ours = "crc32c"

// theirs returns the service's checksum of the file.
func (k *checker) theirs(ctx context.Context, client storage.Client, q question) (string, error) {
	op := storage.Op{Kind: storage.Checksum, Path: q.op.Path, Size: -1, Sum: k.alg, Timeout: time.Minute}
	reason := errors.ErrUnsupported
	if !k.mute.Load() {
		k.rec.Summed(q.op.Kind, max(0, q.op.Size))
		res, err := client.Do(ctx, &op, storage.NoProgress{})
		if err == nil && res.Sum != "" {
			return res.Sum, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		k.mute.Store(errors.Is(err, errors.ErrUnsupported))
		if err != nil {
			reason = err
		}
	}
	if q.op.Kind != storage.Write && !q.made {
		return "", reason // reading again would compare the service with itself
	}
	op.Kind, op.Size, op.Sum = storage.Read, q.op.Size, ours
	res, err := client.Do(ctx, &op, readBack{k.rec})
	if err == nil && res.Sum == "" {
		err = errors.ErrUnsupported
	}
	return res.Sum, err
}

// readBack is the Progress of reads of written files: their bytes are no load, but the service and
// the network carry them.
type readBack struct{ rec *measure.Recorder }

func (readBack) Reached(storage.Phase) {}
func (p readBack) Moved(n int)         { p.rec.ReadBack(storage.Write, int64(n)) }
func (readBack) ServedBy(string)       {}
