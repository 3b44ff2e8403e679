package coordinator

import (
	"cmp"
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

	uncheckedTime = 5 * time.Second // for a checksum that the request does without
	cleanTime     = 20 * time.Second
	noticeTime    = 15 * time.Second // for a source that pushes to notice that nobody listens: XRootD tries to tell that it is every 5 s
)

var errCancelled = errors.New("the request was cancelled")

// A copy is one that third parties make for the coordinator.
type copying struct {
	c    *Coordinator
	l    transfer.Lease
	out  transfer.Outcome
	late bool // the source may push for a while yet, and finish the temporary file
}

// beginThird has a lease done by its two ends. The registry is locked.
func (c *Coordinator) beginThird(ctx context.Context, h *activeLease) {
	run := ctx
	ctx, stop := context.WithCancelCause(ctx)
	h.stop = stop
	h.dispatched = true
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
		c.named(context.WithoutCancel(ctx), "", []transfer.Outcome{o})
		for wait := time.Second; ; wait = min(2*wait, time.Minute) { // the database may be away
			err := c.ended(context.WithoutCancel(ctx), "", []transfer.Outcome{o})
			if err == nil || ctx.Err() != nil && !errors.Is(context.Cause(ctx), errCancelled) {
				return
			}
			c.health.say("database", err)
			if !c.rest(ctx, wait) {
				return
			}
		}
	})
}

// copy makes the copy, and says how that ended.
func (k *copying) copy(ctx context.Context, h *activeLease) transfer.Outcome {
	err := k.do(ctx, h)
	if err != nil {
		k.out.Fault, k.out.After = faultOf(err)
		k.out.Reason = sentence(err.Error())
		var about *sited
		var e *tpc.Error
		if errors.As(err, &about) {
			k.out.At = about.site
		}
		if errors.As(err, &e) {
			k.out.Status = cmp.Or(e.Remote, e.Status)
		}
		if cause := context.Cause(ctx); errors.Is(cause, errCancelled) {
			k.out.Fault, k.out.Reason = transfer.RequestCancelled, cause.Error()
		}
	}
	k.out.End = k.c.now()
	return k.out
}

// copyOf is a copy that has not begun.
func (c *Coordinator) copyOf(l transfer.Lease) *copying {
	return &copying{c: c, l: l, out: transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Begin: c.now()}}
}

// The ends of a copy, with the credentials that they have now: a copy may take longer
// than those live with which it began.

func (k *copying) from() tpc.Target {
	return k.c.target(k.l, k.l.Source, token.Path("read", "/"+k.l.Source.Path))
}

func (k *copying) final() tpc.Target { return k.c.target(k.l, k.l.Dest, k.scopes()...) }

func (k *copying) temp() tpc.Target {
	at := k.l.Dest
	at.Path = tempName(k.l)
	return k.c.target(k.l, at, k.scopes()...)
}

// scopes are what a copy has to do at its destination.
func (k *copying) scopes() []string {
	final, temp := "/"+k.l.Dest.Path, "/"+tempName(k.l)
	return []string{token.Path("read", final), token.Path("create", final), token.Path("modify", temp), token.Path("read", temp)}
}

// tempName is beside the file: so it is on the same file system, and where the
// token for the file allows it.
func tempName(l transfer.Lease) string {
	return path.Join(path.Dir(l.Dest.Path), fmt.Sprintf(".weir-%d.%d.part", l.Item, l.Epoch))
}

// A failure is one whose kind is known.
type failure struct {
	fault transfer.ErrorClass
	text  string
}

func (f *failure) Error() string { return f.text }

// A sited error is about one end of a copy.
type sited struct {
	error
	site string
}

func (s *sited) Unwrap() error { return s.error }

// at says which end an error is about.
func (k *copying) at(e transfer.End, err error) error { return &sited{err, e.Site} }

func failf(f transfer.ErrorClass, format string, a ...any) error {
	return &failure{f, fmt.Sprintf(format, a...)}
}

// do brings the file to its name, and reads it back from there.
func (k *copying) do(ctx context.Context, h *activeLease) error {
	if k.l.Mode == transfer.Check {
		return k.check(ctx)
	}
	want, err := k.l.Adler, error(nil)
	if want == "" {
		if want, err = k.want(ctx); err != nil {
			return err
		}
	}
	if there, err := k.there(ctx, want); there || err != nil {
		k.out.Existed = there
		return err
	}
	if k.l.Adler != "" {
		if want, err = k.want(ctx); err != nil {
			return err
		}
	}
	if err := k.c.tpc.Parents(ctx, k.temp()); err != nil {
		return k.at(k.l.Dest, fmt.Errorf("folders at %s: %w", k.l.Dest.Site, err))
	}
	if err := k.drive(ctx, h); err != nil {
		k.clean(ctx)
		return err
	}
	k.stage(h, transfer.Verifying)
	if err := k.patiently(ctx, func() error { return k.compare(ctx, k.temp(), want) }); err != nil {
		k.clean(ctx)
		return k.blamed(ctx, err, want)
	}
	k.stage(h, transfer.Committing)
	if err := k.patiently(ctx, func() error { return k.rename(ctx) }); err != nil {
		k.clean(ctx)
		return err
	}
	return k.patiently(ctx, func() error { return k.compare(ctx, k.final(), want) })
}

// blamed finds out whether it is the source that is spoiled, if that tells what it has.
func (k *copying) blamed(ctx context.Context, err error, want string) error {
	var f *failure
	if !errors.As(err, &f) || f.fault != transfer.Checksum || k.out.Adler == "" || want == "" {
		return err
	}
	info, statErr := k.c.tpc.Checksum(ctx, k.from(), tpc.Wish{Size: k.l.Size, Want: want})
	if statErr != nil || info.Adler == "" || info.Adler == want {
		return err
	}
	return k.spoiled(info.Adler, want)
}

// spoiled is what is wrong with a source that has other bytes.
func (k *copying) spoiled(has, want string) error {
	return failf(transfer.SourceBad, "the file is spoiled at %s: its adler32 is %s instead of %s", k.l.Source.Site, has, want)
}

// confirmTime is how long a destination that has all bytes may take to say so, where
// it refuses, or nobody answers: they are not copied again for that.
const confirmTime = 10 * time.Minute

// patiently asks until the answer is one: credentials may be renewed meanwhile, and
// servers come back.
func (k *copying) patiently(ctx context.Context, ask func() error) error {
	until := k.c.now().Add(confirmTime)
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		err := ask()
		if err == nil {
			return nil
		}
		switch fault, after := faultOf(err); fault {
		case transfer.Denied, transfer.Unreachable, transfer.Throttled, transfer.Transient:
			wait = max(wait, min(after, time.Minute))
		default:
			return err
		}
		if k.c.now().Add(wait).After(until) || !k.c.rest(ctx, wait) {
			return err
		}
	}
}

// wish is for the checksum of the copy's file, which should be want.
func (k *copying) wish(want string) tpc.Wish {
	w := tpc.Wish{Size: k.l.Size, Want: want, Patience: digestTime}
	if k.l.Unchecked {
		w.Patience = uncheckedTime
	}
	return w
}

// there tells whether the file is at its name already. Another one there is never
// replaced.
func (k *copying) there(ctx context.Context, want string) (bool, error) {
	info, err := k.c.tpc.Checksum(ctx, k.final(), k.wish(want))
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return false, nil
	case err != nil:
		return false, k.at(k.l.Dest, fmt.Errorf("%s: %w", k.l.Dest.Site, err))
	case info.Size == k.l.Size && want != "" && info.Adler == want:
		k.out.Size, k.out.Adler, k.out.Verified = info.Size, info.Adler, true
		return true, nil
	case info.Size == k.l.Size && info.Adler == "" && k.l.Unchecked:
		k.out.Size = info.Size
		return true, nil
	}
	return false, failf(transfer.Occupied, "%s has another file of this name (%d bytes, adler32 %s): it is not replaced", k.l.Dest.Site, info.Size, orNone(info.Adler))
}

// check looks whether the destination has what the catalog says.
func (k *copying) check(ctx context.Context) error {
	info, err := k.c.tpc.Checksum(ctx, k.from(), k.wish(k.l.Adler))
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return failf(transfer.SourceBad, "%s does not have it any more", k.l.Dest.Site)
	case err != nil:
		return k.at(k.l.Dest, fmt.Errorf("%s: %w", k.l.Dest.Site, err))
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

// want is the checksum that the file has to have; the source is asked if the catalog
// does not know it, or if the destination may not tell what has arrived.
func (k *copying) want(ctx context.Context) (string, error) {
	var info tpc.Info
	var err error
	if k.l.Adler == "" || k.l.Unchecked {
		info, err = k.c.tpc.Checksum(ctx, k.from(), k.wish(k.l.Adler))
	} else {
		info, err = k.c.tpc.Stat(ctx, k.from())
	}
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return "", failf(transfer.SourceBad, "%s does not have the file", k.l.Source.Site)
	case err != nil:
		return "", k.at(k.l.Source, fmt.Errorf("%s: %w", k.l.Source.Site, err))
	case info.Size >= 0 && info.Size != k.l.Size:
		return "", failf(transfer.SourceBad, "%s has %d bytes of it instead of %d", k.l.Source.Site, info.Size, k.l.Size)
	case k.l.Adler != "" && info.Adler != "" && info.Adler != k.l.Adler:
		return "", k.spoiled(info.Adler, k.l.Adler)
	case k.l.Adler != "":
		return k.l.Adler, nil
	case info.Adler == "" && !k.l.Unchecked:
		return "", failf(transfer.Unverified, "its checksum is not known, and %s does not tell one", k.l.Source.Site)
	}
	return info.Adler, nil
}

// drive has the destination pull, or the source push if the destination cannot.
func (k *copying) drive(ctx context.Context, h *activeLease) error {
	k.stage(h, transfer.Moving)
	tell := func(moved int64) {
		k.out.Moved = max(k.out.Moved, moved)
		k.c.registry.mu.Lock()
		defer k.c.registry.mu.Unlock()
		k.c.advance(h, transfer.Progress{Item: k.l.Item, Epoch: k.l.Epoch, Stage: transfer.Moving, Moved: moved}, k.c.now())
	}
	active, passive := k.l.Dest, k.l.Source
	from, temp := k.from(), k.temp()
	lent, err := k.lent(ctx, k.l.Source, from, tpc.MayRead)
	if err == nil {
		err = k.c.tpc.Drive(ctx, tpc.Order{Active: temp, Passive: lent, Streams: k.l.Streams}, tell)
	}
	if tpc.KindOf(err) == tpc.Unsupported && ctx.Err() == nil {
		active, passive = passive, active
		lent, other := k.lent(ctx, k.l.Dest, temp, tpc.MayWrite)
		if other == nil {
			other = k.c.tpc.Drive(ctx, tpc.Order{Active: from, Passive: lent, Push: true, Streams: k.l.Streams}, tell)
			k.late = other != nil && (ctx.Err() != nil || tpc.KindOf(other) == tpc.Stalled)
		}
		if tpc.KindOf(other) == tpc.Unsupported {
			other = fmt.Errorf("%w; nor can it be pushed: %s", err, other.Error())
		}
		err = other
	}
	if err == nil {
		return nil
	}
	about := active
	var e *tpc.Error
	if errors.As(err, &e) && e.Remote != 0 {
		about = passive
	}
	if tpc.KindOf(err) == tpc.Missing && about.Site == k.l.Dest.Site {
		err = failf(transfer.Transient, "%v", err) // the source may have it
	}
	return k.at(about, fmt.Errorf("copy from %s to %s: %w", k.l.Source.Site, k.l.Dest.Site, err))
}

// lent is one end as the other one is shown it: with a token that it may have.
func (k *copying) lent(ctx context.Context, e transfer.End, t tpc.Target, activities string) (tpc.Target, error) {
	k.c.registry.mu.Lock()
	lends := k.c.lends(k.c.registry.sites[e.Site])
	k.c.registry.mu.Unlock()
	if !lends {
		return t, &tpc.Error{Kind: tpc.Unsupported, Text: keepsToken(e.Site)}
	}
	if k.c.minted(e.Site) {
		return t, nil
	}
	var err error
	t.Token, err = k.c.lent(ctx, &k.l, e, activities)
	return t, err
}

func (k *copying) stage(h *activeLease, s transfer.Stage) {
	k.c.registry.mu.Lock()
	defer k.c.registry.mu.Unlock()
	h.stage, h.heard = s, k.c.now()
}

// compare reads back what is at the destination.
func (k *copying) compare(ctx context.Context, at tpc.Target, want string) error {
	info, err := k.c.tpc.Checksum(ctx, at, k.wish(want))
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		return failf(transfer.Checksum, "%s says that the file has arrived, and does not have it", k.l.Dest.Site)
	case err != nil:
		return k.at(k.l.Dest, fmt.Errorf("reading back from %s: %w", k.l.Dest.Site, err))
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
	err := k.c.tpc.Move(ctx, k.temp(), k.final().URL)
	var e *tpc.Error
	switch {
	case err == nil:
		return nil
	case tpc.KindOf(err) == tpc.Exists:
		if _, statErr := k.c.tpc.Stat(ctx, k.temp()); tpc.KindOf(statErr) == tpc.Missing {
			return nil // an earlier question was heard
		}
		return failf(transfer.Occupied, "%s has another file of this name meanwhile: it is not replaced", k.l.Dest.Site)
	case errors.As(err, &e) && e.Begun:
		if _, statErr := k.c.tpc.Stat(ctx, k.final()); statErr == nil {
			return nil
		}
	}
	return k.at(k.l.Dest, fmt.Errorf("renaming at %s: %w", k.l.Dest.Site, err))
}

// clean removes the temporary file, which is this attempt's own.
func (k *copying) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if err := k.c.tpc.Remove(ctx, k.temp()); err != nil {
		k.c.log.Warn("a temporary file stays", "site", k.l.Dest.Site, "path", tempName(k.l), "error", err)
	}
}

// faultOf says what the failure of a copy means for its next attempt.
func faultOf(err error) (transfer.ErrorClass, time.Duration) {
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
			return transfer.Unreachable, 0
		}
		return transfer.Denied, 0 // a certificate, or a name
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
		return transfer.ModeUnsupported, 0
	case tpc.Mismatch:
		return transfer.Checksum, 0
	}
	if strings.Contains(e.Text, "No space left") {
		return transfer.DestFull, 0
	}
	return transfer.Transient, 0
}
