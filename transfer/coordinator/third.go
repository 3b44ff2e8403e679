package coordinator

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"time"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/transfer"
)

// How long endpoints may take for what is not copying.
const (
	askTime    = time.Minute
	digestTime = 10 * time.Minute // for the checksum of a large file
	cleanTime  = 20 * time.Second
	noticeTime = 15 * time.Second // for a source that pushes to notice that nobody listens: XRootD tries to tell that it is every 5 s
)

var errCancelled = errors.New("the request was cancelled")

// A copy is one that third parties make for the coordinator.
type copying struct {
	c     *Coordinator
	l     transfer.Lease
	from  tpc.Target
	final tpc.Target
	temp  tpc.Target
	out   transfer.Outcome
	late  bool // the source may push for a while yet, and finish the temporary file
}

// beginThird has a lease done by its two ends. The hub is locked.
func (c *Coordinator) beginThird(ctx context.Context, h *held) {
	run := ctx
	ctx, stop := context.WithCancelCause(ctx)
	h.stop = stop
	h.told = true
	c.third.Go(func() {
		defer stop(nil)
		k := c.copyOf(h.Lease)
		o := k.copy(ctx, h)
		defer func() {
			if k.late && c.rest(run, noticeTime) {
				k.clean(run)
			}
		}()
		if errors.Is(context.Cause(ctx), errOver) {
			return // somebody else has decided about it
		}
		for wait := time.Second; ; wait = min(2*wait, time.Minute) { // the database may be away
			err := c.ended(context.WithoutCancel(ctx), "", []transfer.Outcome{o})
			if err == nil || ctx.Err() != nil && !errors.Is(context.Cause(ctx), errCancelled) {
				return
			}
			c.told.say("database", err)
			if !c.rest(ctx, wait) {
				return
			}
		}
	})
}

// copy makes the copy, and says how that ended.
func (k *copying) copy(ctx context.Context, h *held) transfer.Outcome {
	err := k.do(ctx, h)
	if err != nil {
		k.out.Fault, k.out.After = faultOf(err)
		k.out.Reason = sentence(err.Error())
		if cause := context.Cause(ctx); errors.Is(cause, errCancelled) {
			k.out.Fault, k.out.Reason = transfer.Stopped, cause.Error()
		}
	}
	k.out.End = k.c.now()
	return k.out
}

// copyOf is a copy that has not begun, with what its ends are asked with.
func (c *Coordinator) copyOf(l transfer.Lease) *copying {
	final := "/" + l.Dest.Path
	temp := tempName(l)
	k := &copying{c: c, l: l, out: transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Begin: c.now()}}
	k.from = c.target(l, l.Source, token.Path("read", "/"+l.Source.Path))
	scopes := []string{token.Path("read", final), token.Path("create", final), token.Path("modify", "/"+temp), token.Path("read", "/"+temp)}
	k.final = c.target(l, l.Dest, scopes...)
	at := l.Dest
	at.Path = temp
	k.temp = c.target(l, at, scopes...)
	return k
}

// tempName is beside the file: so it is on the same file system, and where the
// token for the file allows it.
func tempName(l transfer.Lease) string {
	return path.Join(path.Dir(l.Dest.Path), fmt.Sprintf(".weir-%d.%d.part", l.Item, l.Epoch))
}

// A failure is one whose kind is known.
type failure struct {
	fault transfer.Fault
	text  string
}

func (f *failure) Error() string { return f.text }

func failf(f transfer.Fault, format string, a ...any) error {
	return &failure{f, fmt.Sprintf(format, a...)}
}

// do brings the file to its name, and reads it back from there.
func (k *copying) do(ctx context.Context, h *held) error {
	if k.l.Mode == transfer.Check {
		return k.check(ctx)
	}
	if there, err := k.there(ctx); there || err != nil {
		k.out.Existed = there
		return err
	}
	want, err := k.want(ctx)
	if err != nil {
		return err
	}
	if err := k.c.tpc.Parents(ctx, k.temp); err != nil {
		return fmt.Errorf("folders at %s: %w", k.l.Dest.Site, err)
	}
	if err := k.drive(ctx, h); err != nil {
		k.clean(ctx)
		return err
	}
	k.stage(h, transfer.Verifying)
	if err := k.compare(ctx, k.temp, want); err != nil {
		k.clean(ctx)
		return err
	}
	k.stage(h, transfer.Committing)
	if err := k.rename(ctx); err != nil {
		return err
	}
	return k.compare(ctx, k.final, want)
}

// there tells whether the file is at its name already. Another one there is never
// replaced.
func (k *copying) there(ctx context.Context) (bool, error) {
	info, err := k.c.tpc.Stat(ctx, k.final, true, digestTime)
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", k.l.Dest.Site, err)
	case info.Size == k.l.Size && k.l.Adler != "" && info.Adler == k.l.Adler:
		k.out.Size, k.out.Adler, k.out.Verified = info.Size, info.Adler, true
		return true, nil
	}
	return false, failf(transfer.Occupied, "%s has another file of this name (%d bytes, adler32 %s): it is not replaced", k.l.Dest.Site, info.Size, orNone(info.Adler))
}

// check looks whether the destination has what the catalog says.
func (k *copying) check(ctx context.Context) error {
	info, err := k.c.tpc.Stat(ctx, k.from, true, digestTime)
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return failf(transfer.SourceBad, "%s does not have it any more", k.l.Dest.Site)
	case err != nil:
		return fmt.Errorf("%s: %w", k.l.Dest.Site, err)
	case info.Size != k.l.Size || info.Adler != "" && k.l.Adler != "" && info.Adler != k.l.Adler:
		return failf(transfer.SourceBad, "%s has another file of this name (%d bytes, adler32 %s)", k.l.Dest.Site, info.Size, orNone(info.Adler))
	}
	k.out.Existed, k.out.Size, k.out.Adler, k.out.Verified = true, info.Size, info.Adler, info.Adler != "" && info.Adler == k.l.Adler
	return nil
}

func orNone(adler string) string {
	if adler == "" {
		return "not told"
	}
	return adler
}

// want is the checksum that the file has to have; the source is asked if the
// catalog does not know it.
func (k *copying) want(ctx context.Context) (string, error) {
	info, err := k.c.tpc.Stat(ctx, k.from, k.l.Adler == "", digestTime)
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return "", failf(transfer.SourceBad, "%s does not have the file", k.l.Source.Site)
	case err != nil:
		return "", fmt.Errorf("%s: %w", k.l.Source.Site, err)
	case info.Size >= 0 && info.Size != k.l.Size:
		return "", failf(transfer.SourceBad, "%s has %d bytes of it instead of %d", k.l.Source.Site, info.Size, k.l.Size)
	case k.l.Adler != "":
		return k.l.Adler, nil
	case info.Adler == "" && !k.l.Unchecked:
		return "", failf(transfer.Unverified, "its checksum is not known, and %s does not tell one", k.l.Source.Site)
	}
	return info.Adler, nil
}

// drive has the destination pull, or the source push if the destination cannot.
func (k *copying) drive(ctx context.Context, h *held) error {
	k.stage(h, transfer.Moving)
	tell := func(moved int64) {
		k.out.Moved = max(k.out.Moved, moved)
		k.c.hub.mu.Lock()
		defer k.c.hub.mu.Unlock()
		k.c.advance(h, transfer.Progress{Item: k.l.Item, Epoch: k.l.Epoch, Stage: transfer.Moving, Moved: moved}, k.c.now())
	}
	err := k.c.tpc.Drive(ctx, tpc.Order{Active: k.temp, Passive: k.from, Streams: k.l.Streams}, tell)
	if tpc.KindOf(err) == tpc.Unsupported && ctx.Err() == nil {
		err = k.c.tpc.Drive(ctx, tpc.Order{Active: k.from, Passive: k.temp, Push: true, Streams: k.l.Streams}, tell)
		k.late = err != nil && (ctx.Err() != nil || tpc.KindOf(err) == tpc.Stalled)
	}
	if err != nil {
		return fmt.Errorf("copy from %s to %s: %w", k.l.Source.Site, k.l.Dest.Site, err)
	}
	return nil
}

func (k *copying) stage(h *held, s transfer.Stage) {
	k.c.hub.mu.Lock()
	defer k.c.hub.mu.Unlock()
	h.stage, h.heard = s, k.c.now()
}

// compare reads back what is at the destination.
func (k *copying) compare(ctx context.Context, at tpc.Target, want string) error {
	info, err := k.c.tpc.Stat(ctx, at, true, digestTime)
	if err != nil {
		return fmt.Errorf("reading back from %s: %w", k.l.Dest.Site, err)
	}
	k.out.Size, k.out.Adler = info.Size, info.Adler
	k.out.Moved = max(k.out.Moved, info.Size)
	switch {
	case info.Size != k.l.Size:
		return failf(transfer.Checksum, "%d bytes arrived at %s instead of %d", info.Size, k.l.Dest.Site, k.l.Size)
	case info.Adler != "" && want != "":
		if info.Adler != want {
			return failf(transfer.Checksum, "what arrived at %s has adler32 %s instead of %s", k.l.Dest.Site, info.Adler, want)
		}
		k.out.Verified = true
	case !k.l.Unchecked:
		return failf(transfer.Unverified, "%s tells no checksum of it", k.l.Dest.Site)
	}
	return nil
}

// rename gives the file its name. If the answer was lost the name decides: what is
// there is compared afterwards.
func (k *copying) rename(ctx context.Context) error {
	err := k.c.tpc.Move(ctx, k.temp, k.final.URL)
	var e *tpc.Error
	switch {
	case err == nil:
		return nil
	case tpc.KindOf(err) == tpc.Exists:
		k.clean(ctx)
		return failf(transfer.Occupied, "%s has another file of this name meanwhile: it is not replaced", k.l.Dest.Site)
	case errors.As(err, &e) && e.Begun:
		if _, statErr := k.c.tpc.Stat(ctx, k.final, false, 0); statErr == nil {
			return nil
		}
	}
	k.clean(ctx)
	return fmt.Errorf("renaming at %s: %w", k.l.Dest.Site, err)
}

// clean removes the temporary file, which is this attempt's own.
func (k *copying) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if err := k.c.tpc.Remove(ctx, k.temp); err != nil {
		k.c.log.Warn("a temporary file stays", "site", k.l.Dest.Site, "path", tempName(k.l), "error", err)
	}
}

// faultOf says what the failure of a copy means for its next attempt.
func faultOf(err error) (transfer.Fault, time.Duration) {
	var f *failure
	if errors.As(err, &f) {
		return f.fault, 0
	}
	var e *tpc.Error
	if !errors.As(err, &e) {
		return transfer.Transient, 0
	}
	switch e.Kind {
	case tpc.Unreachable:
		if errors.Is(e.Err, syscall.ECONNREFUSED) || errors.Is(e.Err, syscall.EHOSTUNREACH) || errors.Is(e.Err, syscall.ENETUNREACH) {
			return transfer.Away, 0
		}
	case tpc.Denied:
		return transfer.Denied, 0
	case tpc.Missing:
		return transfer.SourceBad, 0
	case tpc.Exists:
		return transfer.Occupied, 0
	case tpc.Full:
		return transfer.DestFull, 0
	case tpc.Busy:
		return transfer.Throttled, e.After
	case tpc.Unsupported:
		return transfer.Permanent, 0
	case tpc.Mismatch:
		return transfer.Checksum, 0
	}
	if strings.Contains(e.Text, "No space left") {
		return transfer.DestFull, 0
	}
	return transfer.Transient, 0
}
